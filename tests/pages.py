"""Reading the HTML pages that commands write."""

import html.parser


class Page(html.parser.HTMLParser):
    """Tags that are open, all tags, text and attributes of a page; fails where tags are not closed in turn."""

    def __init__(self, lines):
        super().__init__()
        self.open, self.seen, self.text, self.attributes = [], [], [], []
        self.feed("".join(lines))
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)
