"""Every rule refuses a tree that breaks it, and lets a good one pass."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
import rules  # noqa: E402

GOOD_C = b"""/*
 * What it is for.
 */
#include "store/thing.h"

#include "node/base/mem.h"

#include <sqlite3.h>
#include <string.h>

/* strcpy( in a comment, "rand(" in a string. */
int thing(void)
{
    const char *text = "sprintf(";
    return text[0];
}
"""
GOOD_H = b"""/*
 * What it offers.
 */
#ifndef SKEIN_STORE_THING_H
#define SKEIN_STORE_THING_H

int thing(void);

#endif
"""


def tree(**changes):
    """A small good tree; keyword names are paths with __ for / and _DOT_ for a dot."""
    files = {
        "README.md": b"# it\n",
        "CMakeLists.txt": b"project(skein)\n",
        ".gitignore": b"/build/\n",
        "store/README.md": b"# store\n",
        "store/CMakeLists.txt": b"skein_unit(store LINK node_base gossip_core)\n",
        "store/thing.c": GOOD_C,
        "store/thing.h": GOOD_H,
        "tests/README.md": b"# tests\n",
        "tests/unit/store/test_thing.c": b'#include "tests/support/unit.h"\n',
        "tests/run.sh": b"#!/usr/bin/env bash\nset -u -o pipefail\n",
    }
    files.update(changes)
    return files


def with_file(path, content):
    return tree(**{path: content if isinstance(content, bytes) else content.encode()})


def c_file(path, body):
    return with_file(path, b"/*\n * Why.\n */\n" + (body if isinstance(body, bytes) else body.encode()))


def long_function(name, lines, end="}"):
    return f"int {name}(void)\n{{\n" + "    work();\n" * (lines - 2) + end + "\n"


@pytest.fixture(autouse=True)
def no_lists(monkeypatch):
    """The lists of exceptions speak of the real tree."""
    monkeypatch.setattr(rules, "UNTESTED", {})
    monkeypatch.setattr(rules, "DISPATCHERS", {})
    monkeypatch.setattr(rules, "IMPURE_EXCEPTIONS", {})


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__[5:])
def test_good_tree_passes(rule):
    assert rule(tree()) == []


TO_DO = "TO" + "DO"
BAD = [
    ("include_direction", c_file("store/bad.c", '#include "node/proxy/proxy.h"\n'), "store/bad.c:4"),
    ("include_direction", c_file("store/bad.c", '#  include "gossip/net/net.h"\n'), "gossip/net"),
    ("include_direction", c_file("node/base/bad.h", '#include "proto/object.h"\n'), "proto"),
    ("include_direction", c_file("node/tls/bad.c", '#include "node/net/loop.h"\n'), "node/net"),
    ("include_direction", c_file("admin/server/bad.c", '#include "store/store.h"\n'), "store"),
    ("include_direction", c_file("gossip/core/bad.c", '#include "store/store.h"\n'), "store"),
    ("include_direction", c_file("node/app/bad.c", '#include "admin/cli/cli.h"\n'), "admin/cli"),
    ("include_direction", c_file("store/bad.c", '#include "thing.h"\n'), "no unit's path"),
    ("include_direction", c_file("store/bad.c", '#include "tests/support/unit.h"\n'), "no unit's path"),
    ("link_direction", with_file("store/CMakeLists.txt", "skein_unit(store LINK\n  node_proxy)\n"), "node/proxy"),
    ("library_headers", c_file("gossip/core/bad.c", "#include <uv.h>\n"), "<uv.h>"),
    ("library_headers", c_file("node/tls/bad.c", "#include <uv.h>\n"), "<uv.h>"),
    ("library_headers", c_file("store/bad.c", "#include <uv.h>\n"), "<uv.h>"),
    ("library_headers", c_file("node/net/bad.c", "#include <openssl/ssl.h>\n"), "openssl"),
    ("library_headers", c_file("node/app/bad.c", "#include <sqlite3.h>\n"), "sqlite3"),
    ("library_headers", c_file("node/proxy/bad.c", "#include <protobuf-c/protobuf-c.h>\n"), "protobuf-c"),
    ("library_headers", c_file("gossip/core/bad.c", "#include <protobuf-c/protobuf-c.h>\n"), "protobuf-c"),
    ("library_headers", c_file("node/app/bad.c", "#include <curl/curl.h>\n"), "curl"),
    ("library_headers", c_file("node/proxy/bad.c", "#include <llhttp.h>\n"), "llhttp"),
    ("generated_types", c_file("proto/bad.c", '#include "objects.pb-c.h"\n'), "objects.pb-c.h"),
    ("pure_units", c_file("gossip/core/bad.c", "#include <time.h>\n"), "time.h"),
    ("pure_units", c_file("gossip/core/bad.c", "#include <pthread.h>\n"), "pthread.h"),
    ("pure_units", c_file("gossip/core/bad.c", '#include "node/base/timesrc.h"\n'), "timesrc"),
    ("pure_units", c_file("node/http/bad.c", "#include <sys/socket.h>\n"), "sys/socket.h"),
    ("pure_units", c_file("proto/bad.c", "#include <fcntl.h>\n"), "fcntl.h"),
    ("file_size", with_file("store/bad.c", "int x;\n" * 801), "801 lines"),
    ("file_size", with_file("store/bad.h", "int x;\n" * 351), "351 lines"),
    ("file_size", with_file("tests/unit/store/test_bad.c", "int x;\n" * 1201), "1201 lines"),
    ("function_size", c_file("store/bad.c", long_function("huge", 81)), "huge has 81 lines"),
    ("function_size", c_file("tests/sim/bad.c", long_function("huge", 121)), "huge has 121 lines"),
    ("banned_calls", c_file("store/bad.c", "int f(void)\n{\n    strcpy (a, b);\n}\n"), "store/bad.c:6: strcpy"),
    ("banned_calls", c_file("tests/unit/store/bad.c", "int x = rand();\n"), "rand"),
    ("banned_calls", c_file("store/bad.c", 'int x = f("a") + sprintf(b, "c");\n'), "sprintf"),
    ("no_sleep_in_unit_tests", c_file("tests/unit/store/bad.c", "int f = usleep(1);\n"), "usleep"),
    ("ascii", with_file("store/bad.c", b"/* caf\xc3\xa9 */\n"), "store/bad.c:1"),
    ("ascii", with_file("store/bad.md", b"one\r\n"), "store/bad.md:1"),
    ("ascii", with_file("store/bad.py", b"x = 1"), "no newline"),
    ("columns", with_file("store/bad.c", "/* " + "a" * 98 + "\n"), "101 columns"),
    ("todo", c_file("store/bad.c", f"/* {TO_DO}: later */\n"), "bare"),
    ("todo", with_file("deploy/bad.sh", f"# {TO_DO}(me)\n"), "bare"),
    ("opening_comment", with_file("store/bad.c", '#include "store/thing.h"\n'), "store/bad.c:1"),
    ("include_guard", with_file("store/bad.h", GOOD_H), "SKEIN_STORE_BAD_H"),
    ("include_guard", with_file("store/bad.h", "/* x */\n#pragma once\n"), "SKEIN_STORE_BAD_H"),
    ("readme", c_file("gossip/core/core.c", ""), "gossip/core"),
    ("unit_tests", c_file("store/other.c", ""), "tests/unit/store/test_other.c"),
    ("tests_have_sources", with_file("tests/unit/store/test_ghost.c", ""), "store/ghost.c"),
    ("top_level", with_file("docs/index.md", "x\n"), "docs"),
    ("top_level", with_file("Makefile", "x\n"), "Makefile"),
    ("sources_in_units", c_file("deploy/tool.c", ""), "deploy/tool.c"),
    ("sources_in_units", c_file("node/stray.c", ""), "node/stray.c"),
    ("machine_paths", with_file("deploy/bad.sh", "cd " + "/" + "work/main\n"), "deploy/bad.sh:1"),
    ("machine_paths", with_file("tests/bad.py", 'x = "/' + 'root/x"\n'), "tests/bad.py:1"),
    ("machine_paths", with_file("tests/bad.py", 'x = "/tmp' + '/skein/x"\n'), "tests/bad.py:1"),
    ("scripts", with_file("deploy/bad", "#!/bin/bash\necho hi\n"), "deploy/bad"),
]


@pytest.mark.parametrize("name,files,what", BAD, ids=[f"{i}-{row[0]}" for i, row in enumerate(BAD)])
def test_bad_tree_is_refused(name, files, what):
    found = getattr(rules, "rule_" + name)(files)
    assert any(what in line for line in found), found
    # And nothing but the bad file is named.
    assert len(found) == 1, found


def test_table_must_point_down(monkeypatch):
    monkeypatch.setitem(rules.ALLOWED, "node/http", {"node/base", "node/tls"})
    assert rules.rule_table_of_units({}) == ["node/http may include node/tls, which is not below it"]


def test_every_rule_has_a_bad_tree():
    covered = {name for name, _, _ in BAD} | {"table_of_units"}
    assert {rule.__name__[5:] for rule in rules.RULES} == covered


def test_exceptions_count_and_expire(monkeypatch):
    files = c_file("store/other.c", long_function("switchboard", 100))
    monkeypatch.setattr(rules, "UNTESTED", {"store/other.c": "why"})
    monkeypatch.setattr(rules, "DISPATCHERS", {"store/other.c:switchboard": "why"})
    assert rules.rule_unit_tests(files) == []
    assert rules.rule_function_size(files) == []
    monkeypatch.setattr(rules, "UNTESTED", {"store/gone.c": "why", "store/thing.c": "why"})
    assert len(rules.rule_unit_tests(tree())) == 2
    files = c_file("store/other.c", long_function("switchboard", 121))
    assert len(rules.rule_function_size(files)) == 1


def test_families_and_covers_count_as_tested():
    files = c_file("store/thing_part.c", "")
    files["store/kv.c"] = files["store/row.c"] = b"/* x */\n"
    assert len(rules.rule_unit_tests(files)) == 2
    files["tests/unit/store/test_laws.c"] = b"/*\n * Merge laws.\n *\n * covers: kv.c,\n *   row.c\n */\n"
    assert rules.rule_unit_tests(files) == []
    assert rules.rule_tests_have_sources(files) == []
    files["tests/unit/store/test_laws.c"] = b"/*\n * covers: kv.c\n *\n * Not row.c.\n */\n"
    assert len(rules.rule_unit_tests(files)) == 1


def test_functions_are_found():
    source = ("static const int table[] = {\n    1,\n};\n\nint one(void)\n{\n    return 1;\n}\n\n"
              "static struct x *two(int a,\n                    int b)\n{\n    if (a) {\n        b();\n    }\n}\n")
    assert rules.functions(source) == [("one", 6, 3), ("two", 12, 5)]


def test_code_only_keeps_lines():
    source = 'a /* x\ny */ b "s\\"t" \'"\' c // d\n#include "e.h"\n'
    code = rules.code_only(source)
    assert code.count("\n") == source.count("\n")
    assert code.split() == ["a", "b", "c", "#include", '"e.h"']


def test_formatter_complains(tmp_path):
    if rules.formatter() is None:
        pytest.skip("no clang-format 14 here")
    (tmp_path / ".clang-format").write_text("BasedOnStyle: LLVM\n")
    (tmp_path / "bad.c").write_text("int   x ;\n")
    (tmp_path / "good.c").write_text("int x;\n")
    assert rules.rule_format(tmp_path, ["good.c"]) == []
    assert rules.rule_format(tmp_path, ["good.c", "bad.c"])[0].startswith("bad.c:1")
