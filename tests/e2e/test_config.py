"""The configuration of sites and users: what it changes, what it forces, and how mistakes in it are shown."""

import json
import os

import pytest


class Site:
    """A user of a machine on which the site has a configuration file."""

    def __init__(self, user, tool, work, where):
        self.user, self.tool, self.work, self.where = user, tool, work, where
        self.file = work / "site.yaml"
        self.prefix = work / "env"
        self.env = {"CONTAINERIZE_CONFIG": str(self.file), "XDG_CONFIG_HOME": str(work / "xdg"), "USER": "somebody"}

    def write(self, text):
        return self.user.write(self.file, text)

    def write_own(self, text):
        (self.work / "xdg/containerize").mkdir(parents=True, exist_ok=True)
        return self.user.write(self.work / "xdg/containerize/config.yaml", text)

    def call(self, *argv, check=True, env=None):
        return self.user.run(self.tool, *argv, check=check, env={**self.env, **(env or {})}, timeout=600)

    def spec(self):
        return self.user.write(self.work / "where.yml", self.where)

    def new(self, *options, **more):
        return self.call("new", "--prefix", self.prefix, *options, self.spec(), **more)

    def show(self, **more):
        return json.loads(self.call("config", "show", "--json", **more).stdout)

    def manifest(self):
        return json.loads((self.prefix / "containerize.json").read_text())

    def compression(self):
        """As recorded in the header of the image."""
        with open(self.prefix / self.manifest()["image"]["file"], "rb") as image:
            header = image.read(96)
        block = int.from_bytes(header[12:16], "little")
        return {1: "zlib", 5: "lz4", 6: "zstd"}[int.from_bytes(header[20:22], "little")], block

    def variables(self, *names, **more):
        return self.user.run(self.prefix / "bin/_debug_exec", "printenv", *names, **more).stdout.split()


@pytest.fixture
def site(user, tool, work, where):
    return Site(user, tool, work, where)


def test_a_build_does_what_the_site_says(site, user):
    site.write("defaults:\n  compression: lz4\n  block_size: 64K\n  environment:\n    SITE_DATA: /data\n    BELOW: ${prefix}/share\n    PER_SITE: soft\n"
               "  wrapper_paths: [no/such, opt/bin]\n  jobs: 3\n  umask: '027'\n"
               f"force:\n  staging: {site.work}/staging/$USER\n  max_jobs: 2\n  environment:\n    RULE: hard\n")
    hook = user.write(site.work / "post.sh", "mkdir -p $env_root/opt/bin; cp /bin/true $env_root/opt/bin/site-tool\n")
    environ = user.write(site.work / "environ.sh", "export PER_SITE=mine RULE=mine SITE_DATA=/more:$SITE_DATA\n")
    done = site.new("--post-install", hook, "--environ", environ, "-v")
    assert "warning" not in done.stderr
    assert "2 of " in done.stderr and f"staging in {site.work}/staging/somebody/containerize-build-" in done.stderr
    assert site.compression() == ("lz4", 64 << 10)
    assert list((site.work / "staging/somebody").iterdir()) == []
    assert site.variables("SITE_DATA", "BELOW", "PER_SITE", "RULE", env={"RULE": "x"}) == ["/more:/data", f"{site.prefix}/share", "mine", "hard"]
    assert (site.prefix / "opt/bin/site-tool").exists() and not (site.prefix / "no").exists()
    assert (site.prefix / "bin/where").stat().st_mode & 0o777 == 0o750
    assert (site.prefix / "containerize.json").stat().st_mode & 0o777 == 0o640


def test_what_is_typed_wins_over_defaults(site, user):
    site.write("defaults:\n  compression: lz4\n  block_size: 64K\n  staging: $NOT_SET_ANYWHERE\n  wrapper_paths: [opt]\n")
    user.run("mkdir", site.work / "typed")
    done = site.new("--compression", "zstd:1", "--tmpdir", site.work / "typed")
    assert "warning" not in done.stderr
    assert site.compression() == ("zstd", 64 << 10)
    done = site.new("--force", check=False)
    assert done.returncode == 2 and f"{site.file}:4: `staging: $NOT_SET_ANYWHERE`: the variable NOT_SET_ANYWHERE is not set" in done.stderr


def test_force_wins_over_what_is_typed(site, user):
    site.write(f"force:\n  compression: lz4\n  block_size: 64K\n  staging: {site.work}/staging\n  installer: pip\n  jobs: 1\n  conda_config: true\n  wrapper_paths: []\n")
    done = site.new("--compression", "none", "--block-size", "64K", "--tmpdir", "/var/tmp", "--installer", "auto", "--jobs", "2", "--no-config", "-w", "share")
    assert site.compression() == ("lz4", 64 << 10)
    warnings = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert warnings[0] == f"warning: --installer auto is ignored: `installer: pip` is forced by {site.file}:5"
    assert [line.split()[1] for line in warnings] == ["--installer", "--compression", "--jobs", "--no-config", "--wrapper-paths", "--tmpdir"]
    assert all(str(site.file) in line for line in warnings)


def test_more_jobs_than_allowed(site):
    site.write("defaults:\n  max_jobs: 1\n")
    done = site.new("--jobs", "3", "-v")
    assert f"warning: --jobs 3 exceeds `max_jobs: 1` in {site.file}:2" in done.stderr and "\n1 of " in done.stderr


def test_updates(site, user):
    site.write("defaults:\n  environment: {OLD: '1'}\n")
    site.new()
    site.write("defaults:\n  environment: {OLD: '2', NEW: '2'}\n  wrapper_paths: [share]\nforce:\n  environment: {RULE: '2'}\n")
    site.call("update", site.prefix, "--", "true")
    assert site.variables("OLD", "NEW", "RULE") == ["1", "2", "2"] and site.manifest()["wrapper_paths"] == ["bin"]
    assert "Nothing changed" in site.call("update", site.prefix, "--", "true").stdout
    done = site.call("update", site.prefix, check=False)
    assert done.returncode == 2 and "no change is given" in done.stderr


def test_prefix(site):
    site.write(f"defaults:\n  prefix: {site.work}/$ENV_NAME\n")
    done = site.call("new", site.spec(), env={"ENV_NAME": "named"})
    assert f"Ready: {site.work}/named (" in done.stdout


def test_channels(site, user, channels):
    channel = f"file://{channels}/main"
    spec = user.write(site.work / "env.yml", "dependencies:\n  - python\n")

    def plan(**more):
        return site.call("new", "--dry-run", "--json", spec, **more)

    def used(**more):
        return {record["channel"] for record in json.loads(plan(**more).stdout)}

    site.write(f"defaults:\n  channels: ['{channel}']\n  cache: {site.work}/cache/$USER\n")
    assert used() == {channel}
    assert (site.work / "cache/somebody/repodata").is_dir() or list((site.work / "cache/somebody").iterdir())
    assert site.call("cache", "dir").stdout.strip() == f"{site.work}/cache/somebody"
    own = site.work / "own-cache"
    assert site.call("cache", "dir", env={"CONTAINERIZE_CACHE": str(own)}).stdout.strip() == str(own)
    # .condarc takes precedence over a site's defaults, but not over what the site forces.
    condarc = user.write(site.work / "condarc", "channels: [file:///no/such/channel]\n")
    assert "/no/such/channel" in plan(check=False, env={"CONDARC": str(condarc)}).stderr
    site.write(f"force:\n  channels: ['{channel}']\n  cache: {site.work}/cache\n")
    assert used(env={"CONDARC": str(condarc)}) == {channel}
    done = site.call("cache", "dir", env={"CONTAINERIZE_CACHE": str(own)})
    assert done.stdout.strip() == f"{site.work}/cache" and "warning: CONTAINERIZE_CACHE=" in done.stderr
    user.write(spec, "channels: [file:///no/such/other]\ndependencies:\n  - python\n")
    assert "/no/such/other" in plan(check=False).stderr, "the file names its own"


def test_show(site, user):
    assert not site.file.exists()
    done = site.call("config", "show", check=False)
    assert done.returncode == 2 and f"{site.file}: this configuration file does not exist" in done.stderr
    site.env["CONTAINERIZE_CONFIG"] = None
    assert {setting["where"] for setting in site.show()["settings"].values() if isinstance(setting["where"], str)} == {"default"}
    site.env["CONTAINERIZE_CONFIG"] = str(site.file)
    site.write("defaults:\n  compression: lz4\n  jobs: 4\n  environment: {A: b}\nforce:\n  staging: /local/$USER\nappends:\n  channels: [bioconda]\n")
    site.write_own("defaults:\n  staging: /mine\n  compression: zstd:9\n  conda_config: off\n  channels: [conda-forge]\n")
    own = site.work / "xdg/containerize/config.yaml"
    tykky = user.write(site.work / "tykky.yaml", "defaults:\n  num_cpus: 8\n  log_level: 2\nappends:\n")
    shown = site.show(env={"CW_GLOBAL_YAML": str(tykky)})
    settings = shown["settings"]
    assert shown["files"] == [str(site.file), str(own), str(tykky)]
    assert settings["compression"] == {"value": "zstd:9", "where": f"{own}:3", "forced": False}
    assert settings["staging"] == {"value": "/local/$USER", "here": "/local/somebody", "where": f"{site.file}:6", "forced": True}
    assert settings["channels"] == {"value": ["conda-forge", "bioconda"], "where": [f"{own}:5", f"{site.file}:8"], "forced": False}
    assert settings["environment"] == {"value": {"A": "b"}, "where": {"A": f"{site.file}:4"}, "forced": {"A": False}}
    assert settings["jobs"]["value"] == 8 and settings["jobs"]["where"] == f"{tykky}:2"
    assert settings["conda_config"]["value"] is False
    assert settings["block_size"] == {"value": "128K", "where": "default", "forced": False}
    assert any("log_level" in note and "has no effect here" in note for note in shown["notes"])
    text = site.call("config", "show", env={"CW_GLOBAL_YAML": str(tykky)}).stdout
    lines = [line.split() for line in text.splitlines()]
    assert ["compression", "zstd:9", f"{own}:3"] in lines
    assert ["staging", "/local/$USER", "(/local/somebody)", f"{site.file}:6", "(forced)"] in lines
    assert ["block_size", "128K", "default"] in lines and ["bioconda", f"{site.file}:8"] in lines
    assert f"Note: `staging:` in {own}:2 has no effect, because {site.file}:6 forces another value" in text


def test_check(site, user):
    bad = user.write(site.work / "bad.yaml", "defaults:\n  compresion: lz4\n  jobs: few\nforced:\n  jobs: 1\n")
    done = site.call("config", "check", bad, check=False, env={"CONTAINERIZE_CONFIG": None})
    assert done.returncode == 2 and done.stdout == ""
    assert f"containerize: {bad}:2: there is no setting `compresion:`" in done.stderr and "Did you mean compression?" in done.stderr
    assert "2 |   compresion: lz4" in done.stderr
    assert f"containerize: {bad}:3: `jobs`: not a number from 1 to 1024: 'few'" in done.stderr
    assert f"containerize: {bad}:4: there is no section `forced:`" in done.stderr
    login = user.write(site.work / "login.yaml", "defaults:\n  jobs: https://me:s3cret-word@host/x\n")
    done = site.call("config", "check", login, check=False, env={"CONTAINERIZE_CONFIG": None})
    assert done.returncode == 2 and "https://****@host/x" in done.stderr and "s3cret-word" not in done.stderr
    site.file = bad
    done = site.new(check=False, env={"CONTAINERIZE_CONFIG": str(bad)})
    assert done.returncode == 2 and f"{bad}:2" in done.stderr and not site.prefix.exists()
    good = user.write(site.work / "good.yaml", "defaults:\n  jobs: 2\n")
    assert site.call("config", "check", good, env={"CONTAINERIZE_CONFIG": None}).stdout == f"{good}: no mistakes\n"


def test_what_others_could_have_written(site, user):
    site.write("defaults:\n  jobs: 2\n").chmod(0o666)
    done = site.new(check=False)
    assert done.returncode == 2 and f"{site.file}: this configuration is not used: everybody can write to it" in done.stderr
    site.file.chmod(0o664)
    if os.getuid() == 0:
        os.chown(site.file, user.uid, 100)  # not the user's own primary group
        assert "its group can write to it" in site.new(check=False).stderr
    site.file.chmod(0o644)
    assert site.show()["settings"]["jobs"]["value"] == 2


def test_a_staging_directory_that_somebody_else_made(site, user):
    shared = site.work / "shared"
    (shared / "somebody").mkdir(parents=True)
    try:
        os.chown(shared / "somebody", 12345, 12345)
    except PermissionError:
        pytest.skip("only root can give a directory away")
    (shared / "somebody").chmod(0o777)
    shared.chmod(0o1777)
    site.write(f"defaults:\n  staging: {shared}/$USER\n")
    done = site.new(check=False)
    assert done.returncode == 2 and "belongs to another user" in done.stderr
