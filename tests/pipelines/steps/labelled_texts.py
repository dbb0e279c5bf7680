r"""Texts, by label, that cleaning repairs or leaves unchanged.

For each label there are a text and the result of cleaning at the level `repair`, or None if the
text stays unchanged.
"""

CODE: dict[str, tuple[str, str | None]] = {
    "Python that escapes": (
        'def escape(text):\n    text = text.replace("&", "&amp;")\n'
        '    return text.replace("<", "&lt;").replace("\\"", "&quot;")\n',
        None,
    ),
    "Python that escapes twice": (
        'return t.replace("&amp;lt;", "&lt;")  # turns &amp; into &\n',
        None,
    ),
    "Python, a test": ('QUERY = "a=1&copy=2"\nASSERT = "&#39;" == esc("\'")\n', None),
    "Python, a comment": ("import html\n\n# The entity &nbsp; is a space.\nSPACE = 32\n", None),
    "a doctest": (">>> html.unescape('&gt;')\n'>'\n", None),
    "C": ('#include <stdio.h>\nint main(void) {\n    puts("R&amp;D");\n    return 0;\n}\n', None),
    "C without a header": ("static void put(node *n) {\n    n->text = amp; /* &amp; */\n}\n", None),
    "JavaScript": ("const esc = (s) => s.split('&').join('&amp;');\n", None),
    "JavaScript, old": ("function esc(s) {\n  return s.replace(/&/g, '&amp;');\n}\n", None),
    "Java": ('public static String esc(String s) {\n    return "&quot;" + s;\n}\n', None),
    "C++ that is escaped": ("std::vector&lt;int&gt; v;\nfor (auto x : v) sum += x;\n", None),
    "PHP": ("<?php echo '&copy; ' . date('Y'); ?>\n", None),
    "CSS": ("li::before {\n  content: '&rarr;';\n}\n", None),
    "shell": ("$ sed -e 's/&amp;/\\&/g' page > out\n", None),
    "a script": ("#!/bin/sh\necho '&lt;' | recode html..utf8\n", None),
    "SQL": ("UPDATE t SET a = 'x &amp; y' WHERE b == 1;\nSELECT a FROM t;\n", None),
    "JSON": ('{\n  "title": "Fish &amp; chips",\n  "pages": 3\n}\n', None),
    "LaTeX": ("\\begin{tabular}{ll}\na & b \\\\\n\\end{tabular}\nWe write &alpha; here.\n", None),
    "Markdown with a fence": ("Escape it:\n\n```html\nFish &amp; chips\n```\n", None),
    "Markdown with inline code": ("Write `&nbsp;` where a line must not break.", None),
    "Ruby": ("puts 'a &lt; b'\n", None),
    "Go": ('fmt.Fprintf(w, "&nbsp;%s", x)\n', None),
    "one call": ('print("5 &lt; 6")', None),
    "C that is escaped": ("if (a &amp;&amp; b-&gt;next) return;", None),
    "a command": ("grep -v '&amp;' page | sort\n", None),
    "Python that is escaped": ("if a &lt; b:\n    return a\n", None),
    "sed": ("git log --oneline | sed 's/&/&amp;/g'\n", None),
    "Haskell": ("escape s = concatMap f s where f '<' = \"&lt;\"\n", None),
    "Rust": ('fn esc(s: &str) -> String {\n    s.replace("&", "&amp;")\n}\n', None),
    "YAML": ('- name: title\n  value: "A &amp; B"\n', None),
    "Perl": ("$s =~ s/&/&amp;/g;\n", None),
    "a template": ("Dear {{ name }},\n&copy; {{ year }}\n", None),
    "a patch": ("@@ -1,2 +1,2 @@\n-a &lt; b\n+a &gt; b\n", None),
    "a page break": ("int a;\n\x0c\nint b;\n", None),
}

MARKUP: dict[str, tuple[str, str | None]] = {
    "HTML": ("<p>Fish &amp; chips</p>\n", None),
    "HTML below": ("Fish &amp; chips\n<br/>\n", None),
    "XML": ("<?xml version='1.0'?>\n<a>x &lt; y</a>\n", None),
    "a lesson": ("In HTML you write &lt;b&gt; to show a tag and &amp;amp; for an ampersand.", None),
    "a question": ("Write &lt;div&gt; in the source, and &amp;lt; to show &lt; itself.", None),
    "tags that are escaped": ("He wrote &lt;br /&gt; after &quot;each&quot; line.", None),
    "an attribute": ('Set class="a&amp;b" there.', None),
    "SVG and its standard": ("An XML file writes &#38; as it is.", None),
}

PROSE: dict[str, tuple[str, str | None]] = {
    "mojibake": ("5 â‚¬ and CafÃ© is how Café looks.", "5 € and Café is how Café looks."),
    "mojibake of quotation marks": ("â€œquotedâ€\x9d", "“quoted”"),
    "mojibake of Chinese": ("ä¸\xadæ–‡", "中文"),
    "mojibake in code": ("x = [1]\nput('cafÃ© &amp;')\n", "x = [1]\nput('café &amp;')\n"),
    "entities": ("Fish &amp; chips &mdash; caf&eacute; &#8364;5", "Fish & chips — café €5"),
    "quotation marks": ("&quot;Yes,&quot; she said: it&#39;s so.", '"Yes," she said: it\'s so.'),
    "entities in Chinese": ("鱼&amp;薯条，见第3节(图2)&hellip;", "鱼&薯条，见第3节(图2)…"),
    "a link": ("See http://a.org/?b=1&amp;c=2 for more.", "See http://a.org/?b=1&c=2 for more."),
    "an address": ("Ann &lt;ann@example.org&gt; wrote:", "Ann <ann@example.org> wrote:"),
    "a menu": ("Home &raquo; News &raquo; Sports", "Home » News » Sports"),
    "figures": ("R&amp;D = 5% of sales; it cost $5.", "R&D = 5% of sales; it cost $5."),
    "a comparison": ("It holds if a &lt; b and b &gt; c.", "It holds if a < b and b > c."),
    "escaped twice": ("Tom &amp;amp; Jerry &amp;nbsp; &amp;", "Tom &amp; Jerry &nbsp; &"),
    "mojibake of an entity": ("it&acirc;&euro;&trade;s", "it’s"),
    "less than": ("Tom &amp; Jerry\nwere 3 < 4 &amp; more", "Tom & Jerry\nwere 3 < 4 &amp; more"),
    "a list": ("(a) fish &amp; chips;\n(b) part 2(3);\n", "(a) fish & chips;\n(b) part 2(3);\n"),
    "no entity": ("AT&T; R&D; a &lt b; &copy 2020", None),
    "colours of a terminal": ("\x1b[1mbold\x1b[0m and \x1b[31mred\x1b[0m.", "bold and red."),
    "words around an escape": ("name\x1b[20Cvalue, a\x1b]0;title\x07b", "name value, a b"),
    "a vertical tab": ("Tab\x0bseparated", "Tab\nseparated"),
    "separators of records": ("one\x1etwo\x1fthree", "one two three"),
    "a bell": ("ring\x07ring\ufeff", "ringring"),
}  # fmt: skip

WHITESPACE: dict[str, tuple[str, str | None]] = {
    "an entity": ("Fish &amp; chips", None),
    "mojibake": ("CafÃ© â€œ", None),
    "line breaks and blanks": ("a \r\n\tb\x0c\n\n", None),
    "controls": ("\ufeffa\x0bb\x1fc\x07 \x1b[1md\x1b[m e\x1b[mf", "a\nb c d e f"),
}
"""Texts in the same format, with the results for the level `whitespace`."""
