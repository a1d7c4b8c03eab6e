"""The rules of the source tree, each a function from files to complaints.

A tree is a dict from path (relative to the repository) to bytes. A rule returns a list of lines that
say where, what, and what would be right. test_structure.py runs every rule on the repository,
test_rules.py shows each one a tree that it must refuse.
"""

import os
import re
import shutil
import subprocess

# ---- what is allowed ----

TOP_LEVEL = {
    "node", "gossip", "admin", "proto", "store", "tests", "deploy",
    "CMakeLists.txt", "CMakePresets.json", "README.md",
}

LEVEL = {
    "node/base": 0,
    "proto": 1, "gossip/core": 1, "node/http": 1, "node/tls": 1, "node/net": 1,
    "store": 2, "gossip/net": 2, "node/proxy": 2, "node/health": 2,
    "admin/server": 3, "admin/cli": 3,
    "node/app": 4,
}

# What a unit may include besides its own files. Nobody may include what is not below it (LEVEL).
ALLOWED = {
    "node/base": set(),
    "proto": {"node/base"},
    "gossip/core": {"node/base"},
    "node/http": {"node/base"},
    "node/tls": {"node/base"},
    "node/net": {"node/base"},
    "store": {"node/base", "proto", "gossip/core"},
    "gossip/net": {"node/base", "proto", "gossip/core", "node/net", "node/tls"},
    "node/proxy": {"node/base", "node/http", "node/tls", "node/net"},
    "node/health": {"node/base", "node/http", "node/net", "node/tls"},
    "admin/server": {"node/base", "proto", "node/http", "node/tls", "node/net"},
    "admin/cli": {"node/base", "proto", "node/http", "node/tls", "node/net"},
    "node/app": set(LEVEL) - {"node/app", "admin/cli"},
}

# System headers that belong to a library: who may include them.
LIBRARY_HEADERS = {
    r"uv\.h": {"node/net", "gossip/net", "node/proxy", "node/health", "admin/server",
                "node/app"},
    r"openssl/.*": {"node/tls", "gossip/net", "node/app"},
    r"sqlite3\.h": {"store"},
    r"(google/)?protobuf-c/.*": {"proto", "gossip/net", "admin/server", "admin/cli", "node/app"},
    r"jansson\.h": {"proto", "admin/server", "admin/cli", "node/app"},
    r"yaml\.h": {"proto", "admin/cli", "node/app"},
    r"curl/.*": {"admin/cli"},
    r"llhttp\.h": set(),  # the tests' oracle
}

# Units without sockets, files and threads; the core of gossip without clocks too (time is passed in).
_IMPURE = r"(pthread|unistd|fcntl|poll|threads|signal|netdb|sys/(socket|epoll|stat|types|uio|un))\.h|netinet/tcp\.h"
IMPURE = {
    "gossip/core": _IMPURE + r"|(sys/)?time\.h|node/base/timesrc\.h",
    "node/http": _IMPURE,
    "proto": _IMPURE,
}
IMPURE_EXCEPTIONS = {}  # path: {header: reason}

LINES_MAX = {".c": 800, ".h": 350}
TEST_LINES_MAX = 1200
COLUMNS_MAX = 100
FUNCTION_MAX = 80
DISPATCHER_MAX = 120
DISPATCHERS = {}  # "path:function": why it is a pure dispatcher

BANNED_CALLS = (
    "strcpy", "strcat", "sprintf", "vsprintf", "strtok", "gets", "alloca", "rand", "srand",
    "system", "popen", "tmpnam", "mktemp",
)

# Sources without a unit test of their own: why.
UNTESTED = {
    "admin/server/wire.c": "TLS on sockets: tests/process/test_admin_security.py",
    "node/base/check.c": "prints and aborts",
    "node/base/errors.c": "a table of texts and a vsnprintf",
    "node/app/node.c": "wiring of the parts: tests/process",
    "node/app/replica.c": "wiring of the parts: tests/process",
    "node/app/admin_ops.c": "wiring of the parts: tests/process",
    "node/app/tickets.c": "wiring of the parts: tests/process/test_tickets.py",
    "node/app/default_cert.c": "wiring of the parts: tests/process/test_certificates.py",
    "node/app/metrics.c": "wiring of the parts: tests/process",
    "node/proxy/exchange_tls.c": "inside real connections: tests/process/test_tls.py",
    "node/proxy/hello.c": "sockets: tests/process/test_tls.py",
    "node/proxy/sock_tls.c": "handshakes with real peers: tests/process/test_tls.py",
    "node/proxy/upstream_splice.c": "sockets and pipes: tests/process/test_bulk.py",
    "node/proxy/upstream_tls.c": "handshakes with real peers: tests/process/test_reencrypt.py",
}

UNIT_FOLDERS = tuple(LEVEL)
README_FOLDERS = ("", "tests", "tests/bench", "deploy") + UNIT_FOLDERS

# Written in pieces, so that this file does not break its own rule.
MACHINE_PATHS = tuple("/" + name for name in ("work/", "tmp/skein/", "root/", "root\""))

TEXT_FILES = (
    ".c", ".h", ".py", ".sh", ".md", ".txt", ".yaml", ".yml", ".json", ".proto", ".cmake", ".conf",
    ".service", ".toml", ".cfg",
)


# ---- helpers ----

def load(root):
    """The repository's files: what git tracks, and what it would track if it were added."""
    names = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=root, check=True, stdout=subprocess.PIPE,
    ).stdout.decode().split("\0")
    tree = {}
    for name in filter(None, names):
        path = os.path.join(root, name)
        if os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as file:
                tree[name] = file.read()
    return tree


def text(tree, path):
    return tree[path].decode("utf-8", "replace")


def unit_of(path):
    """The unit that a path belongs to, or None (tests, deploy)."""
    for unit in UNIT_FOLDERS:
        if path.startswith(unit + "/"):
            return unit
    return None


def sources(tree, *suffixes):
    """C files of units, not of tests."""
    return sorted(p for p in tree if unit_of(p) and p.endswith(suffixes or (".c", ".h")))


def c_files(tree):
    return sorted(p for p in tree if p.endswith((".c", ".h")))


_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code_only(source):
    """Comments, strings and characters blanked, line numbers kept. Include lines keep their names."""
    def blank(match):
        token = match.group()
        if token[0] == '"' and source[source.rfind("\n", 0, match.start()) + 1:match.start()].strip() \
                .startswith("#"):
            return token
        return re.sub(r"[^\n]", " ", token)
    return _TOKEN.sub(blank, source)


def line_of(source, offset):
    return source.count("\n", 0, offset) + 1


_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)


def includes(source):
    """(line, quoted, name) of every include that is not in a comment."""
    code = code_only(source)
    return [(line_of(code, m.start(2)), m.group(1) == '"', m.group(2)) for m in _INCLUDE.finditer(code)]


# ---- rules ----

def rule_include_direction(tree):
    """A unit includes itself and what the table allows, by paths from the root."""
    bad = []
    for path in sources(tree):
        unit = unit_of(path)
        for line, quoted, name in includes(text(tree, path)):
            if not quoted:
                continue
            target = unit_of(name)
            if target is None:
                bad.append(f'{path}:{line}: "{name}" is no unit\'s path from the repository root')
            elif target != unit and target not in ALLOWED[unit]:
                bad.append(f"{path}:{line}: {unit} (level {LEVEL[unit]}) must not know {target} "
                           f"(level {LEVEL[target]})")
    return bad


def rule_table_of_units(_tree):
    """The table itself only points down."""
    return [f"{unit} may include {other}, which is not below it"
            for unit, others in ALLOWED.items() for other in sorted(others)
            if LEVEL[other] >= LEVEL[unit]]


def rule_link_direction(tree):
    """What CMake links follows the same table as what is included."""
    names = {unit.replace("/", "_"): unit for unit in UNIT_FOLDERS}
    bad = []
    for path in sorted(tree):
        unit = os.path.dirname(path)
        if os.path.basename(path) != "CMakeLists.txt" or unit not in LEVEL:
            continue
        for call in re.finditer(r"skein_unit\(([^)]*)\)", text(tree, path)):
            for word in call.group(1).split()[1:]:
                other = names.get(word)
                if other and other != unit and other not in ALLOWED[unit]:
                    bad.append(f"{path}: {unit} must not link {other}")
    return bad


def rule_library_headers(tree):
    """A library is known where it belongs, and nowhere else."""
    bad = []
    for path in sources(tree):
        unit = unit_of(path)
        for line, quoted, name in includes(text(tree, path)):
            for pattern, units in LIBRARY_HEADERS.items():
                if not quoted and re.fullmatch(pattern, name) and unit not in units:
                    bad.append(f"{path}:{line}: <{name}> belongs to {', '.join(sorted(units))}")
    return bad


def rule_generated_types(tree):
    """Generated protobuf types are seen only where proto is allowed, and only as proto/*.pb-c.h."""
    return [f'{path}:{line}: "{name}" must be included as "proto/..."'
            for path in sources(tree) for line, quoted, name in includes(text(tree, path))
            if name.endswith(".pb-c.h") and not (quoted and name.startswith("proto/"))]


def rule_pure_units(tree):
    """Pure units touch no socket, file or thread, and the core of gossip no clock."""
    bad = []
    for path in sources(tree):
        pattern = IMPURE.get(unit_of(path))
        for line, _, name in includes(text(tree, path)) if pattern else ():
            if re.fullmatch(pattern, name) and name not in IMPURE_EXCEPTIONS.get(path, {}):
                bad.append(f"{path}:{line}: {unit_of(path)} is pure and must not include {name}")
    return bad


def rule_file_size(tree):
    """Files stay readable in one sitting."""
    bad = []
    for path in c_files(tree):
        lines = tree[path].count(b"\n")
        limit = TEST_LINES_MAX if path.startswith("tests/") else LINES_MAX[path[-2:]]
        if lines > limit:
            bad.append(f"{path}: {lines} lines, at most {limit}: split it by idea")
    return bad


def functions(source):
    """(name, first line, lines) of each function body; the formatter puts its braces in column 0."""
    lines = code_only(source).split("\n")
    found = []
    for i, line in enumerate(lines):
        if line.rstrip() != "{":
            continue
        end = next((j for j in range(i, len(lines)) if lines[j].startswith("}")), len(lines) - 1)
        head = ""
        for j in range(i - 1, -1, -1):
            if not lines[j].strip() or lines[j].startswith(("}", "#")):
                break
            head = lines[j].strip() + " " + head
        name = re.search(r"(\w+)\s*\(", head)
        found.append((name.group(1) if name else "?", i + 1, end - i + 1))
    return found


def rule_function_size(tree):
    """Functions fit on a screen; a pure dispatcher may be longer, by name."""
    bad = []
    for path in sorted(p for p in tree if p.endswith(".c")):
        for name, line, length in functions(text(tree, path)):
            listed = f"{path}:{name}" in DISPATCHERS or path.startswith("tests/")
            limit = DISPATCHER_MAX if listed else FUNCTION_MAX
            if length > limit:
                bad.append(f"{path}:{line}: {name} has {length} lines, at most {limit}")
    return bad


def rule_banned_calls(tree):
    """No call that cannot be used safely."""
    pattern = re.compile(r"(?<![\w.>])(" + "|".join(BANNED_CALLS) + r")\s*\(")
    return [f"{path}:{line_of(code, m.start())}: {m.group(1)} is banned"
            for path in c_files(tree) for code in [code_only(text(tree, path))]
            for m in pattern.finditer(code)]


def rule_no_sleep_in_unit_tests(tree):
    """A unit test that needs a pause does not test what it thinks."""
    pattern = re.compile(r"(?<!\w)(sleep|usleep|nanosleep|clock_nanosleep)\s*\(")
    return [f"{path}:{line_of(code, m.start())}: {m.group(1)} in a unit test"
            for path in c_files(tree) if path.startswith("tests/unit/")
            for code in [code_only(text(tree, path))] for m in pattern.finditer(code)]


def _is_text(path):
    return path.endswith(TEXT_FILES) and "/corpus/" not in path


def rule_ascii(tree):
    """Plain ASCII, Unix lines, a newline at the end."""
    bad = []
    for path in sorted(filter(_is_text, tree)):
        for number, line in enumerate(tree[path].split(b"\n"), 1):
            if any(byte > 126 or (byte < 32 and byte != 9) for byte in line):
                bad.append(f"{path}:{number}: a byte that is not printable ASCII")
        if tree[path] and not tree[path].endswith(b"\n"):
            bad.append(f"{path}: no newline at the end")
    return bad


def rule_columns(tree):
    """Lines of C fit into the columns of the formatter (which leaves long strings alone)."""
    return [f"{path}:{number}: {len(line)} columns, at most {COLUMNS_MAX}"
            for path in c_files(tree) for number, line in enumerate(text(tree, path).split("\n"), 1)
            if len(line) > COLUMNS_MAX]


def rule_todo(tree):
    """Work that is left has a number, or is not mentioned."""
    words = "|".join(("TO" "DO", "FIX" "ME", "X" "XX"))
    pattern = re.compile(r"\b(" + words + r")\b(?!\(#\d+\))")
    return [f"{path}:{line_of(content, m.start())}: bare {m.group(1)}"
            for path in sorted(filter(_is_text, tree)) for content in [text(tree, path)]
            for m in pattern.finditer(content)]


def rule_opening_comment(tree):
    """Every source file says what it is for."""
    return [f"{path}:1: no opening comment"
            for path in c_files(tree)
            if not path.startswith("tests/unit/") and not text(tree, path).startswith("/*")]


def rule_include_guard(tree):
    """A header's guard is its path."""
    bad = []
    for path in c_files(tree):
        if not path.endswith(".h"):
            continue
        guard = "SKEIN_" + re.sub(r"\W", "_", path).upper()
        if f"#ifndef {guard}\n#define {guard}\n" not in text(tree, path):
            bad.append(f"{path}: the include guard is not {guard}")
    return bad


def rule_readme(tree):
    """Every folder that is a place of its own explains itself."""
    return [f"{folder or '.'}: no README.md" for folder in README_FOLDERS
            if os.path.join(folder, "README.md") not in tree
            and any(p.startswith(folder + "/" if folder else "") for p in tree)]


def _tested(tree):
    """Sources that a unit test names: test_h1.c tests h1.c and h1_*.c, and what `covers:` lists."""
    tested = set()
    for path in tree:
        match = re.fullmatch(r"tests/unit/(.+)/test_(\w+)\.c", path)
        if not match:
            continue
        folder, stem = match.groups()
        covers = re.search(r"covers:(.*?)(\*/|\n \*\n)", text(tree, path) + "*/", re.S)
        names = re.findall(r"\w+\.c", covers.group(1)) if covers else []
        tested.update(f"{folder}/{name}" for name in names)
        tested.update(p for p in tree if os.path.dirname(p) == folder
                      and re.fullmatch(rf"{re.escape(stem)}(_\w+)?\.c", os.path.basename(p)))
    return tested


def rule_unit_tests(tree):
    """Every source of a unit has a unit test, or a reason why not."""
    tested = _tested(tree)
    bad = [f"{path}: no tests/unit/{os.path.dirname(path)}/test_{os.path.basename(path)}, and no "
           f"unit test there says `covers: {os.path.basename(path)}`"
           for path in sources(tree, ".c")
           if not path.endswith("/main.c") and path not in tested and path not in UNTESTED]
    for path in UNTESTED:
        if path not in tree:
            bad.append(f"UNTESTED: {path} does not exist")
        elif path in tested:
            bad.append(f"UNTESTED: {path} has a test now")
    return bad


def rule_tests_have_sources(tree):
    """A unit test mirrors the path of what it tests: a source, a header, or a family of sources."""
    bad = []
    for path in sorted(tree):
        match = re.fullmatch(r"tests/unit/(.+)/test_(\w+)\.c", path)
        if not match:
            continue
        folder, stem = match.groups()
        family = re.compile(rf"{re.escape(folder)}/{re.escape(stem)}(_\w+)?\.(c|h|proto)")
        if not any(family.fullmatch(p) for p in tree) and "covers:" not in text(tree, path):
            bad.append(f"{path}: there is no {folder}/{stem}.c, and it has no `covers:`")
    return bad


def rule_top_level(tree):
    """Nothing but the agreed folders and files at the top, and dot-files."""
    return [f"{name}: not a name of the top level"
            for name in sorted({p.split("/")[0] for p in tree})
            if name not in TOP_LEVEL and not name.startswith(".")]


def rule_sources_in_units(tree):
    """C lives in a unit or under tests."""
    return [f"{path}: neither in a unit nor under tests/" for path in c_files(tree)
            if not unit_of(path) and not path.startswith("tests/")]


def rule_machine_paths(tree):
    """No path of the machine that somebody worked on."""
    pattern = re.compile(r"(?<![\w.~})-])(" + "|".join(map(re.escape, MACHINE_PATHS)) + ")")
    return [f"{path}:{line_of(content, m.start())}: {m.group(1)} is one machine's path"
            for path in sorted(filter(_is_text, tree)) for content in [text(tree, path)]
            for m in pattern.finditer(content)]


def rule_scripts(tree):
    """Shell scripts stop at undefined variables and failed pipes."""
    return [f"{path}: no 'set -u -o pipefail' (or -euo) near its top" for path in sorted(tree)
            if tree[path].startswith((b"#!/bin/bash", b"#!/usr/bin/env bash"))
            and not re.search(rb"^set -e?u(o| -o) pipefail", tree[path], re.M)]


def formatter():
    """clang-format of the pinned version, or None."""
    for name in ("clang-format-14", "clang-format"):
        program = shutil.which(name)
        if program and b"version 14." in subprocess.run([program, "--version"], stdout=subprocess.PIPE,
                                                        check=True).stdout:
            return program
    return None


def rule_format(root, paths):
    """What the formatter would change. Needs files on disk: not a function of a tree."""
    run = subprocess.run([formatter(), "--dry-run", "-Werror", "--style=file", *paths], cwd=root,
                         stderr=subprocess.PIPE, check=False)
    bad = re.findall(r"^(\S+?:\d+):\d+: error: code should be clang-formatted", run.stderr.decode(), re.M)
    if run.returncode != 0 and not bad:
        bad = [run.stderr.decode()[:500]]
    return [f"{place}: not as clang-format 14 writes it" for place in bad]


RULES = [value for name, value in sorted(globals().items())
         if name.startswith("rule_") and name != "rule_format"]
