"""The documentation as a site: mkdocs builds it, and headless Chromium opens every page and searches it."""

import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from urllib.parse import unquote, urldefrag

import pytest
from common import pinned_programs
from conftest import BUILD, CACHE, SOURCE, next_line
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

sys.path.insert(0, str(SOURCE / "docs"))
import messages  # noqa: E402

CONTENTS = """return {
    links: [...document.querySelectorAll("a[href]")].map(link => link.href),
    anchors: [...document.querySelectorAll("[id]")].map(element => element.id)
}"""


@pytest.fixture(scope="module")
def source(place):
    """A copy of the pages and of the sources that have the messages, readable by the user."""
    for folder in ("docs", "src", "wrappers"):
        shutil.copytree(SOURCE / folder, place / "source" / folder)
    shutil.copy(SOURCE / "mkdocs.yml", place / "source")
    return place / "source"


@pytest.fixture(scope="module")
def site(user, place, source):
    """The built site. mkdocs.yml makes every warning an error."""
    programs = pinned_programs(SOURCE / "tests/lib/mkdocs.txt", CACHE / "mkdocs")
    user.run(programs / "mkdocs", "build", "--config-file", source / "mkdocs.yml", "--site-dir", place / "site",
             env={"CONTAINERIZE_BUILD": str(BUILD)})
    return place / "site"


@pytest.fixture(scope="module")
def address(site):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(user):
    """Chromium of the user. It keeps what pages write to the console, and which addresses they request."""
    driver = user.start("/usr/bin/chromedriver", "--port=0", stderr=subprocess.STDOUT)
    while not (started := re.search(r"started successfully on port (\d+)", line := next_line(driver.stdout))):
        assert line, "chromedriver ended"
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    options.add_argument("--headless=new")
    options.add_argument("--disable-dev-shm-usage")  # containers have a small /dev/shm
    options.add_argument("--window-size=1400,1000")  # wide enough for the search field
    options.ignore_local_proxy_environment_variables()
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    try:
        with webdriver.Remote(f"http://127.0.0.1:{started[1]}", options=options) as browser:
            yield browser
    finally:
        driver.terminate()
        driver.wait(60)


def check_silence(browser, address):
    """Since the last call, no page has written to the console, or requested anything from another host."""
    assert browser.get_log("browser") == [], browser.current_url
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requests = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert browser.current_url in requests
    assert [url for url in requests if not url.startswith((address, "data:", "blob:"))] == []


def test_every_page_opens_and_every_link_leads_somewhere(browser, site, address):
    pages, waiting = {}, {address}
    while waiting:
        page = waiting.pop()
        browser.get(page)
        pages[page] = browser.execute_script(CONTENTS)
        check_silence(browser, address)
        waiting |= {urldefrag(link).url for link in pages[page]["links"] if link.startswith(address)} - pages.keys()

    built = {str(path.relative_to(site)) for path in site.rglob("*.html")} - {"404.html"}
    assert built == {page.removeprefix(address) or "index.html" for page in pages}
    links = {(page, *urldefrag(link)) for page, contents in pages.items() for link in contents["links"] if link.startswith(address)}
    assert [link for link in links if link[2] and unquote(link[2]) not in pages[link[1]]["anchors"]] == []


def test_the_search_finds_a_term(browser, address):
    browser.get(address)
    browser.find_element(By.CSS_SELECTOR, "[data-md-component=search-query]").send_keys("containerize-rank")
    result = "a.md-search-result__link[href*='reference/containerize-rank.html']"
    WebDriverWait(browser, 120).until(lambda _: browser.find_elements(By.CSS_SELECTOR, result))
    check_silence(browser, address)


@pytest.mark.parametrize("page", ["commands", "configuration-keys", "environment", "exit-codes", "messages"])
def test_generated_pages_are_in_the_navigation(site, page):
    assert f'href="reference/{page}.html"' in (site / "index.html").read_text()


def test_the_page_of_containerize_rank_has_its_options(site):
    assert "--nproc-per-node N" in (site / "reference/containerize-rank.html").read_text()


def test_explained_messages_exist():
    """Each message in the table of troubleshooting.md is one of the program, of its scripts, of the kernel or of ssh."""
    known = messages.read_messages(SOURCE)
    others = "\n".join([*messages.read_literals(SOURCE), *(path.read_text() for path in SOURCE.glob("templates/**/*.*")),
                        *map(os.strerror, range(1, 134)), "Bad owner or permissions on /etc/ssh/"])
    cells = messages.EXPLAINED.findall((SOURCE / "docs/how-to/troubleshooting.md").read_text())
    assert cells
    for quote in (quote for cell in cells for quote in messages.quotes_in(cell)):
        parts = [part.strip() for part in quote.split("...")]
        assert any(messages.is_quoted(message, f"`{quote}`") for message in known) or all(part in others for part in parts), quote


def test_links_of_the_readme_lead_to_files():
    links = re.findall(r"\]\(([^)]+)\)", (SOURCE / "README.md").read_text())
    assert "docs/index.md" in links
    assert [link for link in links if not (SOURCE / link).exists()] == []


def test_drawings_are_what_dot_makes_of_their_texts(user, source):
    drawings = list(source.rglob("*.dot"))
    assert drawings
    for text in drawings:
        assert user.run("dot", "-Tsvg", text).stdout == text.with_suffix(".svg").read_text()
