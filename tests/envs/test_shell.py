import copy
import random
import re
import time

import pytest

from rllm_envs.tool_use.shell.files import MAX_FILE_LENGTH, ShellError
from rllm_envs.tool_use.shell.patterns import Pattern
from rllm_envs.tool_use.shell.shell import Shell

TREE = {
    "a.txt": "pear\napple\napple\nfig\n",
    "docs": {"b.txt": "one two\nthree\n", "c.md": "Fig tree\n", ".hidden": "x\n"},
    "empty": {},
    "t.csv": "name,age\nAda,31\nBo,9\nCy,120\n",
}


def shell(is_writable=False):
    return Shell(copy.deepcopy(TREE), is_writable=is_writable)


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("ls", "a.txt\ndocs\nempty\nt.csv"),
        ("ls docs", "b.txt\nc.md"),
        ("ls -a docs", ".hidden\nb.txt\nc.md"),
        ("ls -l docs", "-rw-r--r--     14 b.txt\n-rw-r--r--      9 c.md"),
        ("ls -R docs", "docs:\nb.txt\nc.md"),
        ("ls -p", "a.txt\ndocs/\nempty/\nt.csv"),
        ("ls *.txt */*.txt", "a.txt\ndocs/b.txt"),
        ("ls -d", "ls: unknown option -d (known: -l -a -A -R -p -1 -h -F)"),
        ("cd docs; pwd; cd ..; pwd", "/docs\n/"),
        ("cd a.txt", "cd: a.txt: Not a directory"),
        ("cat docs/c.md a.txt", "Fig tree\npear\napple\napple\nfig"),
        ("cat -n docs/c.md", "     1\tFig tree"),
        ("cat missing", "cat: missing: No such file or directory"),
        ("cat docs", "cat: docs: Is a directory"),
        ("grep apple a.txt", "apple\napple"),
        ("grep -n fig a.txt", "4:fig"),
        ("grep -c apple a.txt", "2"),
        ("grep -ri fig", "a.txt:fig\ndocs/c.md:Fig tree"),
        ("grep -rl fig /", "/a.txt"),
        ("grep -v -c p a.txt", "1"),
        ("grep -w tree docs/*", "docs/c.md:Fig tree"),
        ("grep -h e docs/*", "one two\nthree\nFig tree"),
        ("grep -o p a.txt | wc -l", "5"),
        ("grep -E 'pear|fig' a.txt", "pear\nfig"),
        (r"grep 'pear\|fig' a.txt", "pear\nfig"),
        ("grep '^a..le$' a.txt | uniq -c", "      2 apple"),
        ("grep -F . a.txt", ""),
        ("grep zebra a.txt && echo yes || echo no", "no"),
        ("find . -name '*.txt'", "./a.txt\n./docs/b.txt"),
        ("find docs -type f", "docs/.hidden\ndocs/b.txt\ndocs/c.md"),
        ("find / -type d", "/\n/docs\n/empty"),
        ("find . -maxdepth 1 -type f ! -name '*.csv'", "./a.txt"),
        ("find . -empty", "./empty"),
        ("find . -exec rm {} +", "find: -exec is not supported"),
        ("wc a.txt", "4 4 21 a.txt"),
        ("wc -l a.txt docs/b.txt", "4 a.txt\n2 docs/b.txt\n6 total"),
        ("cat a.txt | wc -w", "4"),
        ("head -n 1 a.txt", "pear"),
        ("head -2 a.txt | tail -1", "apple"),
        ("tail -n +3 a.txt", "apple\nfig"),
        ("tail -n 0 a.txt", ""),
        ("sort a.txt", "apple\napple\nfig\npear"),
        ("sort -u -r a.txt", "pear\nfig\napple"),
        ("tail -n +2 t.csv | sort -t , -k 2 -n | cut -d , -f 1", "Bo\nAda\nCy"),
        ("tail -n +2 t.csv | sort -t, -k2,2nr", "Cy,120\nAda,31\nBo,9"),
        ("tail -n +2 t.csv | sort -t , -k 2", "Cy,120\nAda,31\nBo,9"),
        ("tail -n +2 t.csv | sort -t , -k 2n", "Bo,9\nAda,31\nCy,120"),
        ("sort -k 0 t.csv", "sort: invalid key '0' (known: -k 2, -k 2,2, -k 2nr)"),
        ("sort a.txt | uniq -d", "apple"),
        ("uniq a.txt", "pear\napple\nfig"),
        ("cut -d, -f2- t.csv", "age\n31\n9\n120"),
        ("cut -d ' ' -f 2 docs/b.txt", "two\nthree"),
        ("echo a  'b  c' \"d\"", "a b  c d"),
        ("echo '*' \\* *.md", "* * *.md"),
        ("echo docs/* # comment", "docs/b.txt docs/c.md"),
        ("echo abc | tr a-c A-C", "ABC"),
        ("echo abc | tr -d b", "ac"),
        ("sed s/p/P/ a.txt | head -n 2", "Pear\naPple"),
        ("sed 's/p/[&]/g' a.txt | sed -n 2p", "a[p][p]le"),
        ("sed '2,3d' a.txt", "pear\nfig"),
        ("sed /apple/d a.txt", "pear\nfig"),
        ("sed -n '$p' a.txt", "fig"),
        ("sed -i s/a/b/ a.txt", "sed: -i: the file system is read-only"),
        ("echo x > new", "echo: the file system is read-only"),
        ("cat missing 2>/dev/null | wc -l", "cat: missing: No such file or directory\n0"),
        ("rm a.txt", "rm: command not found (known: cat cd cut echo find grep head ls pwd sed sort "
         "tail tr uniq wc)"),
        ("echo 'a", "unexpected end of line while looking for '"),
        ("echo $HOME", "variables and substitutions are not supported in this shell"),
        ("echo `ls`", "variables and substitutions are not supported in this shell"),
        ("| wc", "syntax error near |"),
        ("ls |", "syntax error near ;"),
        ("", ""),
    ],
)  # fmt: skip
def test_commands_print_what_is_worked_out_by_hand(line, output):
    assert shell().run(line) == output


def test_reading_changes_nothing():
    sh = shell()
    for line in ("cd docs; ls; cat ../a.txt", "sed s/a/b/ ../a.txt", "sort ../a.txt"):
        sh.run(line)
    assert sh.files.tree == TREE


@pytest.mark.parametrize(
    ("line", "path", "node"),
    [
        ("echo hi > new.txt", "new.txt", "hi\n"),
        ("echo fig >> docs/c.md", "docs/c.md", "Fig tree\nfig\n"),
        ("sort a.txt | uniq > docs/u.txt", "docs/u.txt", "apple\nfig\npear\n"),
        ("mkdir -p x/y/z", "x/y", {"z": {}}),
        ("touch empty/n a.txt", "empty", {"n": ""}),
        ("cp a.txt empty", "empty", {"a.txt": TREE["a.txt"]}),
        ("cp -r docs copy", "copy", TREE["docs"]),
        ("mv docs/*.txt empty", "empty", {"b.txt": "one two\nthree\n"}),
        ("mv docs/*.txt empty", "docs", {"c.md": "Fig tree\n", ".hidden": "x\n"}),
        ("mv a.txt b.txt", "a.txt", None),
        ("mv docs empty", "empty", {"docs": TREE["docs"]}),
        ("rm a.txt t.csv", "a.txt", None),
        ("rm -r docs", "docs", None),
        ("rm docs", "docs", TREE["docs"]),
        ("rmdir docs", "docs", TREE["docs"]),
        ("rmdir empty", "empty", None),
        ("sed -i 's/apple/kiwi/' a.txt", "a.txt", "pear\nkiwi\nkiwi\nfig\n"),
        ("echo -n 1 | tee empty/x", "empty", {"x": "1"}),
        ("mv docs docs/in", "docs", TREE["docs"]),
        ("cp -r / empty", "empty", {}),
        ("rm -rf /", "docs", TREE["docs"]),
        ("cd docs && rm -r ../docs", "docs", TREE["docs"]),
        ("cp a.txt docs/", "docs/a.txt", TREE["a.txt"]),
        ("cp a.txt none/", "none", None),
        ("mv a.txt a.txt", "a.txt", TREE["a.txt"]),
        ("mv a.txt no/where", "a.txt", TREE["a.txt"]),
        ("rm -f missing", "missing", None),
    ],
)
def test_writing_commands_change_the_tree(line, path, node):
    sh = shell(is_writable=True)
    sh.run(line)
    assert sh.files.find(tuple(path.split("/"))) == node


def test_a_shell_cannot_be_filled_up():
    sh = shell(is_writable=True)
    sh.run("echo " + "x" * 3000 + " > big")
    for _ in range(20):
        sh.run("cat big big > big2; mv big2 big")
    assert len(sh.files.find(("big",))) <= MAX_FILE_LENGTH
    for number in range(14):
        sh.run(f"cp -r / /c{number}; mkdir n{number}; cp -r docs n{number}")
        sh.run("cp -r " + "docs " * 200 + f"/n{number}/docs")
    assert len(str(sh.files.tree)) < 500 * (MAX_FILE_LENGTH + 100)


@pytest.mark.parametrize(
    "line",
    [
        "cat " + "a.txt " * 600 + "| sort | sort | sort | grep -v '.*.*.*.*.*.*.*z'",
        "grep '" + "a*" * 90 + "b' a.txt t.csv " + "a.txt " * 400,
        "echo " + "a" * 3000 + " | grep '" + "a*" * 90 + "b'",
        "echo " + "a" * 3000 + " | sed 's/" + "a*" * 90 + "b/x/g'",
        "find " + "/ " * 1500,
        "ls " + "*/" * 1500,
        "ls -R " + "/ " * 1500,
        "echo " + "[*" * 1500,
        "echo '" + "'\"" * 1500,
        "sed " + "s" * 3000,
        "cut -d , -f " + "1," * 1000 + "1 t.csv",
        "sort -n " + "a.txt " * 600,
    ],
)
def test_hostile_commands_end_soon(line):
    start = time.perf_counter()
    shell().run(line)
    assert time.perf_counter() - start < 4.0


@pytest.mark.parametrize(
    ("text", "line", "span"),
    [
        ("ab*", "xabbb", (1, 5)),
        ("b*", "abb", (0, 0)),
        ("[0-9][0-9]*", "in 2024!", (3, 7)),
        ("[^a-z ]", "ab Cd", (3, 4)),
        ("^b", "ab", None),
        ("b$", "bb", (1, 2)),
        ("a.c", "abc", (0, 3)),
        (r"a\.c", "abc", None),
        ("a+", "a+", (0, 2)),
        (r"a\+", "xaa", (1, 3)),
        (r"\d\d", "a12", (1, 3)),
        (r"x\|yz", "ayz", (1, 3)),
        ("*a", "*a", (0, 2)),
        ("[]a]", "]", (0, 1)),
        ("[[:digit:]]", "a1", (1, 2)),
        ("", "abc", (0, 0)),
    ],
)
def test_patterns_find_the_leftmost_longest_match(text, line, span):
    assert Pattern(text).find(line, lambda amount: None) == span


def test_patterns_agree_with_python_on_random_lines():
    rng = random.Random(1)
    for _ in range(3000):
        text = "".join(rng.choice(["a", "b", ".", "a*", "b+", "c?", "[ab]", "[^a]", "a|b"])
                       for _ in range(rng.randint(1, 4)))  # fmt: skip
        line = "".join(rng.choice("abc") for _ in range(rng.randint(0, 8)))
        found = Pattern(text, extended=True).find(line, lambda amount: None)
        match = re.search(text, line)
        assert (found is None) == (match is None)
        if found is not None and match is not None:
            assert found[0] == match.start()
            assert found[1] >= match.end()
            assert re.fullmatch(text, line[slice(*found)])


def test_unknown_parts_of_patterns_are_refused():
    for text in (r"\(a\)", "[a", "a\\", r"\bword", "a" * 300, "[z-a]"):
        with pytest.raises(ShellError):
            Pattern(text)
    with pytest.raises(ShellError):
        Pattern("(a)", extended=True)
