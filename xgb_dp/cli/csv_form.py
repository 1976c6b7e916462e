"""How CSV files are written. Apart from what reads them, whose packages take long to load."""

from __future__ import annotations

import codecs
import sys
from dataclasses import dataclass

from ..errors import PrivacyParameterError

# Encodings whose decoders carry nothing from one line to the next, besides tables of single bytes.
_LINES_ALONE = {
    "ascii", "big5", "big5hkscs", "cp932", "cp949", "cp950", "euc_jis_2004", "euc_jisx0213",
    "euc_jp", "euc_kr", "gb18030", "gb2312", "gbk", "iso8859-1", "johab", "shift_jis",
    "shift_jis_2004", "shift_jisx0213", "utf-16", "utf-16-be", "utf-16-le", "utf-32", "utf-32-be",
    "utf-32-le", "utf-8", "utf-8-sig",
}  # fmt: skip


def _reads_lines_alone(encoding: codecs.CodecInfo) -> bool:
    """Whether no line of text can change how another one is decoded."""
    module = sys.modules.get(getattr(encoding.incrementaldecoder, "__module__", ""))
    return encoding.name in _LINES_ALONE or hasattr(module, "decoding_table")


@dataclass(frozen=True)
class Csv:
    """How CSV files are written: what stands between cells, and the encoding of the text."""

    separator: str = ","
    encoding: str = "utf-8-sig"  # with or without a byte order mark

    def __post_init__(self) -> None:
        one = len(self.separator) == 1 and self.separator.isascii()  # others: another parser
        if not one or self.separator in '"\r\n\0':
            raise PrivacyParameterError(
                "--separator must be one ASCII character other than a quote or a line break, such "
                "as ; or a tab."
            )
        try:
            known = _reads_lines_alone(codecs.lookup(self.encoding))
        except (LookupError, ValueError):
            known = False
        if not known:
            raise PrivacyParameterError(
                "--encoding is not the name of an encoding of text that reads each line alone. "
                "Give for example utf-8, latin-1, cp1252, utf-16, shift_jis or gb18030. Encodings "
                "with shifts or escapes, such as iso2022_jp, hz and utf-7, are refused: there one "
                "row can change the text of the rows below it. Convert such files first."
            )
