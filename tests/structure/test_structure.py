"""The repository obeys every rule of rules.py."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
import rules  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TREE = rules.load(ROOT)


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__[5:])
def test_rule(rule):
    bad = rule(TREE)
    assert not bad, f"{rule.__doc__}\n" + "\n".join(bad)


def test_format():
    if rules.formatter() is None:
        pytest.skip("no clang-format 14 here, and other versions format differently")
    bad = rules.rule_format(ROOT, rules.c_files(TREE))
    assert not bad, "\n".join(bad)


def test_there_is_something_to_check():
    assert len(rules.sources(TREE)) > 20
