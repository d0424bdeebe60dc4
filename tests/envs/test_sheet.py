import time

import pytest

from rllm_envs.tool_use.sheet import Sheet, cells_of, shifted

CELLS = {"A1": "2", "A2": "3", "A3": "-1.5", "B1": "north", "B2": "South", "B3": "north", "C1": "0"}


@pytest.mark.parametrize(
    ("formula", "shown"),
    [
        ("=1+2*3", "7"),
        ("=(1+2)*3", "9"),
        ("=-2*-3", "6"),
        ("=2--3", "5"),
        ("=7/2", "3.5"),
        ("=1/3", "0.3333333333"),
        ("=A1*A2", "6"),
        ("=a1+$A$2", "5"),
        ("=SUM(A1:A3)", "3.5"),
        ("=sum(A1:B3, 10)", "13.5"),
        ("=AVERAGE(A1:A2)", "2.5"),
        ('=MIN(A1:A3)&"/"&MAX(A1:A3)', "-1.5/3"),
        ("=COUNT(A1:C3)", "4"),
        ('=COUNTIF(B1:B3,"NORTH")', "2"),
        ('=COUNTIF(A1:A3,">=2")', "2"),
        ("=COUNTIF(A1:A3,2)", "1"),
        ('=COUNTIF(B1:B3,"<>north")', "1"),
        ('=SUMIF(B1:B3,"north",A1:A3)', "0.5"),
        ('=SUMIF(A1:A3,">0")', "5"),
        ('=AVERAGEIF(B1:B3,"south",A1:A3)', "3"),
        ("=SUMPRODUCT(A1:A3,A1:A3)", "15.25"),
        ("=ROUND(2/3,2)", "0.67"),
        ("=ABS(A3)", "1.5"),
        ('=IF(A1>1,"yes","no")', "yes"),
        ('=IF(B1="NORTH",1,0)', "1"),
        ("=IF(FALSE,1)", "FALSE"),
        ("=A1=2", "TRUE"),
        ("=A1<>2", "FALSE"),
        ("=D9", ""),
        ("=D9+1", "1"),
        ("=1/C1", "#DIV/0!"),
        ("=AVERAGE(B1:B3)", "#DIV/0!"),
        ("=B1+1", "#VALUE!"),
        ("=A1:A2", "#VALUE!"),
        ("=SUMPRODUCT(A1:A3,A1:A2)", "#VALUE!"),
        ("=Z1", "#REF!"),
        ("=A41", "#REF!"),
        ("=FOO(1)", "#NAME?"),
        ("=__import__", "#ERROR!"),
        ("=1+", "#ERROR!"),
        ("=-", "#ERROR!"),
        ("=(1", "#ERROR!"),
        ("=SUM()", "#ERROR!"),
        ("=IF(1)", "#ERROR!"),
        ("=1 2", "#ERROR!"),
        ("=", "#ERROR!"),
        ("=E5", "#CYCLE!"),
        ("=SUM(E1:E9)", "#CYCLE!"),
        ("=" + "9" * 15 + ("*" + "9" * 15) * 18, "1e+285"),
        ("=" + "9" * 15 + ("*" + "9" * 15) * 30, "#NUM!"),
        ("just text", "just text"),
        ("42", "42"),
    ],
)
def test_formulas_have_the_values_worked_out_by_hand(formula, shown):
    assert Sheet({**CELLS, "E5": formula}).shown("E5") == shown


def test_values_follow_their_cells_and_two_cells_may_not_need_each_other():
    sheet = Sheet({"A1": "1", "A2": "=A1+1", "A3": "=A2*10"})
    assert sheet.shown("A3") == "20"
    sheet.set("A1", "4")
    assert sheet.shown("A3") == "50"
    sheet.set("A1", "=A3")
    assert [sheet.shown(name) for name in ("A1", "A2", "A3")] == ["#CYCLE!"] * 3
    sheet.set("A1", "")
    assert sheet.shown("A3") == "10"


def test_references_move_with_a_copy():
    assert shifted("=A1+$A1+A$1+$A$1", 2, 1) == "=B3+$A3+B$1+$A$1"
    assert shifted('=SUM(A1:B2)&"A1"', 1, 0) == '=SUM(A2:B3)&"A1"'
    assert shifted("=A1", 0, 10) == "=#REF!"
    assert shifted("=A40", 1, 0) == "=#REF!"


def test_ranges_are_read_from_any_corner():
    assert cells_of("B2:A1") == [["A1", "B1"], ["A2", "B2"]]
    assert cells_of(" j40 ") == [["J40"]]
    for text in ("", "A0", "K1", "A1:B2:C3", "1A", "A41", "A1:"):
        assert cells_of(text) is None


@pytest.mark.parametrize(
    "formula",
    [
        "=" + "(" * 250 + "1" + ")" * 250,
        "=" + "SUM(A1:J40)+" * 20 + "1",
        "=" + "-" * 290 + "1",
        "=" + "IF(1," * 60,
        "=A2&A2&A2&A2&A2&A2",
    ],
)
def test_hostile_sheets_end_soon(formula):
    cells = {
        f"{letter}{row}": shifted(formula, row - 1, 0) for letter in "BC" for row in range(1, 41)
    }
    cells |= {f"A{row}": f"=A{row + 1}&A{row + 1}" for row in range(1, 40)} | {"A40": "x" * 300}
    start = time.perf_counter()
    sheet = Sheet(cells)
    for name in cells:
        assert len(sheet.shown(name)) <= 1000
    assert time.perf_counter() - start < 4.0
