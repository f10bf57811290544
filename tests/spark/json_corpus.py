"""Values in JSON whose meaning Spark's ``from_json`` decides."""

from dataclasses import dataclass, field
from typing import Final, final

CORRUPT: Final = "_corrupt"


@final
@dataclass(frozen=True, slots=True)
class Cases:
    """Values that are read by one schema and with the same options."""

    schema: str
    values: tuple[bytes, ...]
    options: dict[str, str] = field(default_factory=dict)


def _of(*texts: str) -> tuple[bytes, ...]:
    """Return objects whose field ``a`` is each text."""
    return tuple(b'{"a":' + text.encode() + b"}" for text in texts)


def _listed(texts: str) -> list[str]:
    """Return texts that lines list with bars between them."""
    return [text for line in texts.strip().splitlines() for text in line.split(" | ")]


_SCALARS: Final = _of(
    *("null", "true", "false", "0", "-0", "1", "-1", "12", "127", "128", "-128", "-129", "255"),
    *("256", "32767", "32768", "-32768", "-32769", "2147483647", "2147483648", "-2147483648"),
    *("-2147483649", "9223372036854775807", "9223372036854775808", "-9223372036854775808"),
    *("-9223372036854775809", "12345678901234567890", "123456789012345678901234567890"),
    *("1.0", "1.5", "-0.0", "0.5", "1e2", "1E2", "1e+2", "1e-2", "12.50", "1e400", "-1e400"),
    *("1e-400", "4.9e-324", "2.4e-324", "1.7976931348623157e308", "1.7976931348623159e308"),
    *("2.2250738585072014e-308", "3.4028235e38", "3.5e38", "1e-46", "16777217", "0.1", "100.0"),
    *("1234567.0", "12345678.9", "0.001", "0.00012", "123456789.123456789", "9007199254740993"),
    *("1.00000000000000000000000000000000000001", "NaN", "Infinity", "-Infinity", "+Infinity"),
    *("-INF", "+INF", "INF", '"NaN"', '"Infinity"', '"-Infinity"', '"+INF"', '"-INF"', '"INF"'),
    *('"nan"', '""', '" "', '"x"', '"5"', '"1.5"', '"true"', "[]", "[1]", "{}", '{"b":1}'),
    *('{"b":1.50,"c":[1.0,null,true,"x\\u00e9\\n"]}', "'single'", "'a\\'b'", "'a\"b'"),
    *('"a\\"b\\\\c\\/d\\b\\f\\n\\r\\t"', '"\\u0041\\u00e9\\u4e3b\\ud83d\\ude00"', '"\\ud83d"'),
    *('"\\ude00x"', '"\\ud83d\\ud83d\\ude00"', '"\\ud83dx"', '"\\u0000"', '"é主😀"', '"a\\\'b"'),
    *("01", "-01", "00", "1.", ".5", "-", "+1", "1e", "1e+", "--1", "0x10", "1_000", "1f"),
    *("True", "nul", "nulls", "truex", "tru", '"\\x"', '"\\u12"', '"\\u12G4"', '"a\nb"'),
    *('"a\tb"', '"abc', "undefined", "'", "1 2", "1,", "[1", '{"b"', "", "1]", '"a" "b"'),
)
"""Values of each kind, valid and not; all types read them."""

_ATOMS: Final = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary"),
    *("decimal(10,2)", "decimal(38,0)", "decimal(38,38)", "date", "timestamp", "timestamp_ntz"),
)
_TYPES: Final = (*_ATOMS, "array<int>", "map<string,int>", "struct<b:int>")

_DATES: Final = _of(
    *_listed(r"""
"2020-02-29" | "2021-02-29" | "2020-2-9" | "2020" | "2020-03" | "2020-3" | "20200101"
" 2020-01-02 " | "2020-01-02T10:00" | "2020-01-02 junk" | "2020-01-02x" | "2020-01-"
"2020-00-01" | "2020-13-01" | "2020-04-31" | "+2020-01-01" | "-2020-01-01" | "0000-01-01"
"0001-01-01" | "9999-12-31" | "10000-01-01" | "1234567-01-01" | "12345678-01-01" | "1582-10-04"
"1582-10-15" | "1500-02-29" | "18000" | "0" | "-1" | "+5" | "999" | "12345678" | "-12345678"
"-99999999" | "3000000000" | "2020-01-01GMT" | "2020/01/01" | "2020-01-02\u0000"
"\u00322020-01-02" | "2020-01-02-03" | "T2020-01-01" | 5 | 1.5 | "2020-001-01" | "202-01-01"
"--2020-01-01" | "2020-1" | "2020-01-1T" | "5 " | "5881580-07-11" | "5881580-07-12"
"-5877641-06-23" | "-5877641-06-22" | "9999999-01-01" | "2020-02-30" | "1900-02-29"
"2000-02-29" | "2020-12-31" | "2020-W01-1"
""")
)
_TIMES: Final = _of(
    *_listed(r"""
"2020-01-02 03:04:05" | "2020-01-02T03:04:05" | "2020-01-02T03:04:05Z" | "2020-01-02T03:04:05.1"
"2020-01-02T03:04:05.123456" | "2020-01-02T03:04:05.123456789" | "2020-01-02T03:04:05.Z"
"2020-01-02T03:04:05+01:00" | "2020-01-02T03:04:05-0130" | "2020-01-02T03:04:05+1"
"2020-01-02T03:04:05+1:30" | "2020-01-02T03:04:05+01:3" | "2020-01-02T03:04:05+18:00"
"2020-01-02T03:04:05+18:01" | "2020-01-02T03:04:05+013015" | "2020-01-02T03:04:05+01:30:15"
"2020-01-02T03:04:05+01:60" | "2020-01-02T03:04:05+130" | "2020-01-02T03:04:05+"
"2020-01-02T03:04:05UTC" | "2020-01-02T03:04:05 UTC+2" | "2020-01-02T03:04:05GMT-03:30"
"2020-01-02T03:04:05UT+0230" | "2020-01-02 03:04:05 Europe/Berlin"
"2020-07-02 03:04:05 Europe/Berlin" | "2020-03-29 02:30:00 Europe/Berlin"
"2020-10-25 02:30:00 Europe/Berlin" | "1700-01-01 00:00:00 Europe/Berlin"
"2500-07-01 00:00:00 America/New_York" | "12020-07-01 00:00:00 America/New_York"
"2020-01-02 03:04:05 PST" | "2020-01-02 03:04:05 EST" | "2020-01-02 03:04:05 CST"
"2020-01-02 03:04:05 Nowhere/City" | "2020-01-02 03:04:05z"
"2020-01-02 03:04:05 europe/berlin" | "2020-01-02 03:04" | "2020-01-02 03" | "2020-01-02 3:4:5"
"2020-01-02 03:04Z" | "2020-01-02T" | "2020-01-02 24:00:00" | "2020-01-02 23:60:00"
"2020-01-02 23:59:60" | "2020-01-02 003:04:05" | "2020-01-02" | "2020-01" | "2020"
"123456-01-01 00:00:00" | "1234567-01-01 00:00:00" | "294247-01-10T04:00:54.775807Z"
"294247-01-10T04:00:54.775808Z" | "294247-01-10T04:00:55Z" | "-290308-12-21T19:59:05.224192Z"
"-290308-12-21T19:59:05.224191Z" | "-290308-12-21T19:59:04Z" | " 2020-01-02 03:04:05 "
"2020-01-02  03:04:05" | "2020-01-02T03:04:05:06" | "2020-01-02x03:04:05"
"2020-01-01T00:00:00GMT+01:00" | "2020-01-01T00:00GMT+01:00" | "GMT2020-01-01 00:00:00"
"0000-01-01 00:00:00" | "-0001-01-01 00:00:00" | "1969-12-31 23:59:59.999999"
"1582-10-10 00:00:00" | 0 | -1 | 1577836800 | 253402300799 | 1577836800.5 | 1577836800000
"1577836800" | ""
""")
)
_DECIMALS: Final = _of(
    *_listed(r"""
1.005 | 1.004999 | -1.005 | 0.005 | 0.0049 | 99999999.99 | 99999999.994 | 99999999.995
100000000 | 1e7 | 1e8 | 1e-3 | 5e-3 | 1e-999999 | 0e999 | 12345678901234567890.5
99999999999999999999999999999999999999 | 99999999999999999999999999999999999999.4
99999999999999999999999999999999999999.5 | 100000000000000000000000000000000000000
0.99999999999999999999999999999999999999 | 0.999999999999999999999999999999999999995 | "1.005"
"+1.5" | ".5" | "5." | "1e2" | "1E+2" | "1e" | "1,234.5" | "1,2,3" | "," | " 1" | "1 " | "0x1"
"1.2.3" | "-" | "--1" | "1e99999999999" | "1e-99999999999" | "NaN" | NaN | Infinity | -0.0
"-0" | "1d" | "1_0" | 1000000000000000000000000000000000000000000000000000000000000e-60
"1e2147483648" | "e5" | "." | "1e+" | "1e-2" | "1,e,2" | "-,5" | ",-5" | "1e0000000000000000005"
""")
)
_BASE64: Final = _of(
    *_listed(r"""
"AQI=" | "AQ==" | "AQID" | "AQI" | "AQ" | "A" | "AQ=" | "=" | "====" | "A===" | "" | "AQ==AQID"
"AQID AQID" | "AQ ID" | "AQ-_" | "+/+/" | "\u0041QID" | "AQ\/\/" | " AQID " | "AQI==" | "AQ=I"
"AQIDé" | 'AQID' | "AR==" | "AQID\n" | "=QID"
""")
)
_STRUCTURES: Final = (
    *(b"", b" ", b"\n\t\r ", b"null", b"1", b'"x"', b"true", b"[]", b'[{"a":1}]', b"{}", b" { } "),
    *(b"x", b"{", b"}", b"[", b'{"a"', b'{"a":', b'{"a":1', b'{"a":1,', b'{"a":1,}', b"{,}"),
    *(b'{"a" 1}', b'{"a":1} junk', b'{"a":1}{"a":2}', b'{"a":1},', b'{"a":1}}', b'{"a":1 "b":2}'),
    *(b'{"a":1;"b":2}', b"{a:1}", b"{'a':1}", b"{'a\":1}", b'{"a":1,"a":2}', b'{"a":1,"a":null}'),
    *(b'{"b":"x","b":"y"}', b'{"c":{"d":1},"c":{"e":"z"}}', b'{"c":{"d":1},"c":null}'),
    *(b'{"A":1,"B":"x"}', b'{"\\u0061":1}', b'{"a\\u0000":1,"a":2}', b'{"":1}'),
    *(b'\xef\xbb\xbf{"a":1}', b'\x00{"a":1}', b'{"a":1}\x00', b'{\x0b"a":1}'),
    *(b'{"a":1,"z":{"y":[1,{"x":null}]},"b":"q"}', b'{"a":1,"z":{"y":[1,}]},"b":"q"}'),
    *(b'{"a":1,"z":[1}', b'{"a":1,"z":"\\q","b":"y"}', b'{"a":1,"z":tru,"b":"y"}'),
    *(b'{"a":1,"z":01,"b":"y"}', b'{"a":1,"z":"u', b'{"c":{"d":"bad","e":"ok"}}'),
    *(b'{"c":{"d":1,"e":"ok","f":[1,2]}}', b'{"c":[1],"a":1}', b'{"c":1,"a":1}', b'{"f":[1,2,3]}'),
    *(b'{"f":[1,"x",3],"a":7}', b'{"f":[1,null]}', b'{"f":[]}', b'{"f":[[1]],"a":7}'),
    *(b'{"f":{"a":9},"a":7}', b'{"f":[{"a":9}],"a":7}', b'{"f":[1,{"a":9},2],"a":7}'),
    *(b'{"f":7,"a":1}', b'{"g":{"k":1,"l":2}}', b'{"g":{"k":1,"k":2}}', b'{"g":{}}'),
    *(b'{"g":{"k":null}}', b'{"g":{"\\u006b":1}}', b'{"g":[1],"a":7}'),
    *(b'{"h":[{"d":1},{"d":"x","e":"y"},null,{}]}', b'{"h":[{"d":1},5],"a":7}', b'{"h":[],"a":7}'),
    *(b'{"h":[{"d":1,"e":{"z":[1.0]}}]}', b'{"i":{"k":[1,2],"l":null,"m":[]}}'),
    *(b'{"j":[[1],[2,3],[],null]}', b'{"j":[[1],["x"],[2]],"a":7}', b'{"j":[1],"a":7}'),
    *(b'{"k":{"p":{"d":1},"q":{"d":"x","e":"y"}}}', b'{"k":{"p":1},"a":7}'),
    *(b'{"l":[{"k":1},{"k":2,"l":3}]}', b'{"l":[{"k":"x"}],"a":7}'),
    *(b'{"b":"x","a":"bad","f":["bad"],"c":{"d":"bad"}}', b'{"a":"bad","b":5,"f":null}'),
    *(b'{"b":[1, 2.0 ,{"x" : "y"}]}', b'{"b":{"k":1,"k":2}}'),
    b'{"b":{"q":"\\u0001\\u001f\\u007f\\"/"}}',
    '{"b":{"é":"主😀\\ud83d"}}'.encode(),
    b'{"b":{"n":[1e5,1E-7,-0.0,-0,123456789012345678901234567890,1e400]}}',
    *(b'{"b":[true,false,null,NaN]}', b"{'b':{'q':'\"'}}", b'{"b":[[],{},[{}],{"x":[]}]}'),
    *(b'{"a":1 ,  "b"\n:\t"x" }', b'{"a":1/**/}', b'{"a":1}//x', b'{"a":1#x\n}'),
    b'{"z":' + b"[" * 998 + b"]" * 998 + b',"a":1}',
    b'{"z":' + b"[" * 999 + b"]" * 999 + b',"a":1}',
    b'{"z":' + b"[" * 1000 + b"]" * 1000 + b',"a":1}',
    b'{"z":' + b"9" * 1000 + b',"a":1}',
    b'{"z":' + b"9" * 1001 + b',"a":1}',
    b'{"z":1.' + b"9" * 999 + b',"a":1}',
    b'{"z":1.' + b"9" * 1000 + b',"a":1}',
    b'{"a":1' + b" " * 100 + b"}",
    *(b'{"\\ud83d":1,"a":2}', b'{"a":1}\n{"a":2}', b"[1,2", b'{"a":1]', b'{"f":[1}'),
)
_NESTED: Final = (
    "a bigint, b string, c struct<d:bigint,e:string>, f array<bigint>, g map<string,bigint>, "
    "h array<struct<d:bigint,e:string>>, i map<string,array<bigint>>, j array<array<bigint>>, "
    "k map<string,struct<d:bigint,e:string>>, l array<map<string,bigint>>"
)

_BROKEN: Final = (
    *(b'{"a":7,"c":{"d":1,"e":"u', b'{"a":7,"c":{"d":1', b'{"a":7,"f":[1,}'),
    *(b'{"a":7,"f":[1,],"b":"x"}', b'{"a":7,"b":"x\ny"}', b'{"a":7,"b":"x'),
    *(b'{"a":7,"h":[{"d":1,}]}', b'{"a":7,"b":[1,],"c":{"d":1}}', b'{"a":7,"z":{"k":1,}}'),
)
_BROKEN_INSIDE: Final = (
    *(b'{"a":7,"c":{"d":1,"e":}}', b'{"a":7,"c":{"d":tru},"b":"x"}'),
    *(b'{"a":7,"b":{"x":tru},"c":{"d":1}}', b'{"a":7,"b":"\\q,"c":{"d":1}}'),
    *(b'{"a":7,"g":{"k":01}}', b'{"a":7,"g":{"k":1,}}'),
)
_CLOCKS: Final = _of('"10:20:30"', '"T10:20:30"', '"10:20"', '"10:20:30Z"')
_BAD_DUPLICATES: Final = (
    *(b'{"a":1,"a":"x"}', b'{"a":"x","a":1}', b'{"c":{"d":1},"c":5}'),
    *(b'{"c":{"d":1},"c":{"d":"x"}}', b'{"f":[1],"f":["x"],"a":1}', b'{"g":{"k":1},"g":{"k":"x"}}'),
    *(b'{"f":[1,2],"f":[3]}', b'{"f":[1],"b":"x","f":null}'),
    *(b'{"h":[{"d":1,"d":2,"e":"x","e":"yy"}]}', b'{"h":[{"d":1}],"h":[{"e":"z"},{"d":4}]}'),
)
_IN_PATTERNS: Final = _of(
    *_listed(r"""
"2020-01-02" | "20200102" | "02.01.2020" | "2.1.2020" | "02.01.20" | "2020/01/02"
"2020-01-02T03:04:05.123Z" | "2020-01-02T03:04:05.1Z" | "2020-01-02T03:04:05Z"
"2020-01-02t03:04:05.123z" | "2020-01-02T03:04:05.123+01:00" | "2020-01-02T03:04:05.1234Z"
"2020-01-02T03:04:05.123+0100" | "2020-01-02T03:04:05.123+01" | "2020-01-02 03:04:05"
"2020-01-02 3:4:5" | "2020-02-30" | "+12020-01-02" | "12020-01-02" | "-0001-01-02"
"-2020-01-02" | "120200102" | "+120200102" | "20200102030405" | "20200102030405123"
"2020-01-02 " | " 2020-01-02" | "2020" | "2020-1-2" | "2020-13-01" | "20-01-02" | "03:04"
"3:04" | "24:00" | "23:60" | "2020-01-02T03:04:05.123456789Z" | 5 | ""
"2020-01-02T03:04:05,123" | "2020-01-02T03:04:05.123-18:01" | "2020-01-02 at 03h"
"2020-01-02T03:04:05.123-0830" | "2020-01-02 03:04:05.000001" | "-5.1.2020" | "0.1.2020"
""")
)
_PATTERNS: Final = _listed(
    r"""
yyyy-MM-dd | yyyyMMdd | dd.MM.yyyy | d.M.yyyy | dd.MM.yy | yyyy-M-d | yyyy/MM/dd | y-MM-dd
yyyy-MM-dd'T'HH:mm:ss.SSSXXX | yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX] | yyyy-MM-dd HH:mm:ss[.SSSSSS]
yyyy-MM-dd H:m:s | yyyyMMddHHmmss | yyyy | HH:mm | yyyy-MM-dd'T'HH:mm:ss.SSSXX
yyyy-MM-dd'T'HH:mm:ss.SSSX | yyyy-MM-dd'T'HH:mm:ss.SSSZ | yyyy-MM-dd'T'HH:mm:ss.SSSxxx
yyyy-MM-dd[ 'at' HH'h'] | yyyy-MM-dd'T'HH:mm:ss.SSSSSSSSSX | yyyy-MM-dd'T'HH:mm:ss
"""
)
_BAD_MAPS: Final = (
    *(b'{"g":{"k":"x","a":7,"b":"y"},"a":1}', b'{"g":{"k":"x"},"a":1}'),
    *(b'{"i":{"k":["x",1],"a":[2]},"a":1}', b'{"k":{"p":{"d":"x"},"a":{"d":2}},"a":1}'),
    *(b'{"l":[{"k":"x","a":9},{"a":8}],"a":1}', b'{"g":{"k":{"a":5},"b":"z"},"a":1}'),
)
_BAD_UTF8: Final = (
    *(b'{"a":1,"b":"x\xff"}', b'{"b":"\xc3"}', b'{"b":"\xed\xa0\x80"}', b'{"z":"\xff","b":"x"}'),
    *(b'{"\xff":1,"b":"x"}', b'{"b":"\xf4\x90\x80\x80"}', b'{"b":"\xc0\x80"}'),
    *(b'{"b":{"x":"\xff"},"a":1}', b'{"g":{"\xff":1},"a":1}', b'\xff{"a":1}'),
)
_ODD: Final = (
    *(b'{"a":007,"b":"x"}', b'{"a":-00,"b":00012.50}', b'{"b":"\\x\\q\\\xc3\xa9"}'),
    *(b'{"b":"x\ny\x01"}', b'{"b":{"q":"x\ny"}}', b"{b:'x',a:1}", b"{b-c:1,a:2,$_@:3}"),
    *(b'{b:{c:1,"d":2}}', b"{g:{k:1,l_2:2}}", b'/*x*/{"a"/**/:/*"*/1//y\n,"b":"/*z*/"}/'),
    *(b'{"a":1/x}', b'{"a":1}', b"{'a':1,'b':'x'}", b'{"a":NaN,"b":NaN}', b'{"b":"NaN"}'),
    *(b'{"d":NaN}', b'{"d":"NaN"}', b'{"d":-Infinity}', b'{"a":1,//\n"b":"x"}', b'{"a":/*1'),
    *(b'{1a:2,"a":3}', b'{true:2,"a":3}', b'{"b":{true:2,null:null}}'),
)
_ODD_SCHEMA: Final = "a bigint, b string, d double, g map<string,bigint>"
_ODD_OPTIONS: Final = (
    "allowComments",
    "allowUnquotedFieldNames",
    "allowNumericLeadingZeros",
    "allowBackslashEscapingAnyCharacter",
    "allowUnquotedControlChars",
)

CASES: Final = (
    *(Cases(f"a {atom}", _SCALARS) for atom in _TYPES),
    Cases("a date", _DATES),
    Cases("a timestamp", _TIMES),
    Cases("a timestamp", _TIMES, {"timeZone": "America/Los_Angeles"}),
    Cases("a timestamp_ntz", _TIMES),
    Cases("a decimal(10,2)", _DECIMALS),
    Cases("a decimal(38,0)", _DECIMALS),
    Cases("a decimal(38,38)", _DECIMALS),
    Cases("a decimal(3,3)", _DECIMALS),
    Cases("a binary", _BASE64),
    Cases(_NESTED, _STRUCTURES),
    Cases(_NESTED, (*_BROKEN, *_BROKEN_INSIDE)),
    Cases(_NESTED, _BAD_DUPLICATES),
    Cases(_NESTED, _BAD_MAPS),
    Cases(_NESTED, _BAD_UTF8),
    Cases(_ODD_SCHEMA, _ODD),
    *(Cases(_ODD_SCHEMA, _ODD, {name: "true"}) for name in _ODD_OPTIONS),
    Cases(_ODD_SCHEMA, _ODD, dict.fromkeys(_ODD_OPTIONS, "true")),
    Cases(_ODD_SCHEMA, _ODD, {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}),
    Cases("a date, b timestamp", (*_DATES, *_TIMES), {"enableDateTimeParsingFallback": "false"}),
    Cases(
        "a bigint",
        _of("[[[1]]]", "[[1]]", "12345", "123456"),
        {"maxNestingDepth": "3", "maxNumLen": "5"},
    ),
    Cases(
        "a double",
        _of(
            *("0.1111", "0.11111", "0.111111", "-0.11111", "-0.111111", "1.1111", "1.11111"),
            *("0.111e1", "0.1111e1", "0.111e11", "0e1111", "0e11111", "0e111111", "-12345"),
        ),
        {"maxNumLen": "5"},
    ),
    *(
        Cases("a timestamp", _IN_PATTERNS, {"timestampFormat": pattern, "timeZone": "Asia/Kolkata"})
        for pattern in _PATTERNS
    ),
    *(Cases("a date", _IN_PATTERNS, {"dateFormat": pattern}) for pattern in _PATTERNS[:6]),
    Cases("a date", _IN_PATTERNS, {"dateFormat": "yyyy"}),
    *(
        Cases("a timestamp_ntz", _IN_PATTERNS, {"timestampNTZFormat": pattern})
        for pattern in ("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "yyyyMMddHHmmss")
    ),
    Cases("a timestamp, b timestamp_ntz", _CLOCKS),
)

_BAD: Final[dict[str, object]] = {}

DECIDED: Final[dict[tuple[str, bytes], dict[str, object]]] = {
    # Jackson takes 128 to 255 for bytes, and Spark makes negative numbers of them.
    ("a tinyint", b'{"a":128}'): _BAD,
    ("a tinyint", b'{"a":255}'): _BAD,
    # Spark's seconds overflow when they become microseconds.
    ("a timestamp", b'{"a":9223372036854775807}'): _BAD,
    ("a timestamp", b'{"a":9007199254740993}'): _BAD,
    ("a timestamp", b'{"a":-9223372036854775808}'): _BAD,
    # Spark adds the date on which it parses.
    **{("a timestamp, b timestamp_ntz", value): _BAD for value in _CLOCKS},
    # What Jackson returns once it has failed inside of a field.
    **{(_NESTED, value): _BAD for value in _BROKEN_INSIDE},
    # Spark keeps the value of an earlier duplicate.
    (_NESTED, b'{"a":1,"a":"x"}'): _BAD,
    (_NESTED, b'{"c":{"d":1},"c":5}'): _BAD,
    (_NESTED, b'{"f":[1],"f":["x"],"a":1}'): {"a": 1},
    (_NESTED, b'{"g":{"k":1},"g":{"k":"x"}}'): _BAD,
    # Spark replaces bytes that are not UTF-8.
    (_NESTED, b'{"a":1,"b":"x\xff"}'): {"a": 1},
    (_NESTED, b'{"b":"\xc3"}'): _BAD,
    (_NESTED, b'{"b":"\xed\xa0\x80"}'): _BAD,
    (_NESTED, b'{"b":"\xf4\x90\x80\x80"}'): _BAD,
    (_NESTED, b'{"b":"\xc0\x80"}'): _BAD,
    (_NESTED, b'{"b":{"x":"\xff"},"a":1}'): {"a": 1},
    (_NESTED, b'{"g":{"\xff":1},"a":1}'): {"a": 1},
}
"""The fields that are not null where our result differs, by schema and value.

The reasons are in docs/project/decisions/0026-json-beyond-from-json.md.
"""
