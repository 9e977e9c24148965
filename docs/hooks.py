"""Hooks of mkdocs, which add the generated pages, and list all pages of a folder in the navigation."""

import os
import re
import subprocess
import textwrap
from pathlib import Path

import messages
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

TROUBLESHOOTING = "how-to/troubleshooting.md"
RANK = "reference/containerize-rank.md"
INTRODUCTION = f"""# Messages

The table has all error messages and warnings of the program, in alphabetical order, each with what you can do. `...`
stands for a value. An error is printed as `containerize: WHERE: MESSAGE`. WHERE is often a file with the number of a
line. [Troubleshooting](../{TROUBLESHOOTING}) explains the most common messages.

| message | what to do |
|---|---|
"""


def anchor_of(cell):
    return re.sub("[^a-z0-9]+", "-", messages.quotes_in(cell)[0].lower()).strip("-")


def page_of_messages(root):
    explained = messages.EXPLAINED.findall((root / "docs" / TROUBLESHOOTING).read_text())
    known = messages.read_messages(root)
    page = INTRODUCTION
    for message in sorted(known, key=lambda message: re.sub("[^a-z0-9]+", " ", message.lower()).strip()):
        links = [f"[Explanation](../{TROUBLESHOOTING}#{anchor_of(cell)})" for cell in explained if messages.is_quoted(message, cell)]
        page += f"| `` {message} `` | {'<br>'.join([*known[message], *links])} |\n"
    return page


def build_directory(config):
    return Path(config.config_file_path).parent / os.environ.get("CONTAINERIZE_BUILD", "build/release")


def help_of_rank(config):
    """The session program is containerize-rank if it is called by that name."""
    program = build_directory(config) / "libexec/containerize/session"
    return subprocess.run(["containerize-rank", "--help"], executable=program, stdout=subprocess.PIPE, text=True, check=True).stdout


def on_files(files, config):
    root = Path(config.config_file_path).parent
    made = build_directory(config) / "docs/reference"
    pages = sorted(made.glob("*.md"))
    if not pages:
        raise PluginError(f"There are no pages in {made}. Build the target `reference`, or set CONTAINERIZE_BUILD to a build directory.")
    for page in pages:
        files.append(File.generated(config, f"reference/{page.name}", abs_src_path=str(page)))
    files.append(File.generated(config, "reference/messages.md", content=page_of_messages(root)))

    names = sorted(file.src_uri for file in files.documentation_pages())
    for section in filter(lambda entry: isinstance(entry, dict), config.nav):
        for title, folder in section.items():
            if isinstance(folder, str) and folder.endswith("/"):
                section[title] = [name for name in names if name.startswith(folder)]


def on_page_markdown(markdown, page, config, **_):
    """Gives each message in the table an anchor, for links from the page of messages, and inserts the help of containerize-rank."""
    if page.file.src_uri == RANK:
        return markdown.replace("    HELP\n", textwrap.indent(help_of_rank(config), "    "))
    if page.file.src_uri == TROUBLESHOOTING:
        return messages.EXPLAINED.sub(lambda row: f'| <a id="{anchor_of(row[1])}"></a>{row[1]} | ', markdown)
    return markdown
