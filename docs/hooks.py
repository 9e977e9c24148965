"""A hook of mkdocs: a section of the navigation that mkdocs.yml gives as a folder lists all pages of that folder."""


def on_files(files, config):
    pages = sorted(file.src_uri for file in files.documentation_pages())
    for section in filter(lambda entry: isinstance(entry, dict), config.nav):
        for title, folder in section.items():
            if isinstance(folder, str) and folder.endswith("/"):
                section[title] = [page for page in pages if page.startswith(folder)]
