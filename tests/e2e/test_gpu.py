"""What packages were built for: builds warn about it and record it, and `check` compares it with the node."""

import json

import pytest

SITE = "lib/python3.11/site-packages"


@pytest.fixture(scope="module")
def torch_build(user, tool, place, channels):
    """A conda environment with the real CPU build of torch, built for nodes with CUDA. Yields the prefix and what the build printed."""
    spec = user.write(place / "env.yml", f"channels:\n  - file://{channels}/main\n  - nodefaults\ndependencies:\n  - python\n  - pip\n")
    # The test imports nothing, so torch's dependencies can be left out.
    post = user.write(place / "post.sh", "pip install -q --no-deps torch==2.13.0\n")
    done = user.run(str(tool), "new", "--prefix", str(place / "torch"), "--cuda", "12.4", "--post-install", str(post), str(spec),
                    timeout=1200, env={"CONTAINERIZE_CACHE": str(place / "cache")})
    return place / "torch", done.stderr


def check(user, tool, prefix):
    done = user.run(str(tool), "check", str(prefix), "--json", check=False)
    answer = json.loads(done.stdout)
    assert done.returncode == (0 if answer["fits"] else 1), done.stderr
    return answer


def accelerators(prefix):
    return json.loads((prefix / "containerize.json").read_text())["build"].get("accelerators")


def test_build_warns_and_records(torch_build):
    prefix, said = torch_build
    assert "warning: torch 2.13.0+cpu in this environment has no GPU support, but the environment is for cuda 12.4." in said
    assert accelerators(prefix) == [{"package": "torch", "version": "2.13.0+cpu", "built_for": "cpu",
                                     "evidence": f"/{SITE}/torch/version.py"}]


def test_check_reads_what_is_in_the_image(user, tool, torch_build):
    prefix, _ = torch_build
    answer = check(user, tool, prefix)
    (torch,) = answer["packages"]
    assert {key: torch[key] for key in ("package", "version", "built_for", "evidence")} == accelerators(prefix)[0]
    assert torch["fits"] == answer["fits"] == (not answer["host"]["devices"])
    shown = user.run(str(tool), "check", str(prefix), check=False).stdout
    assert "torch 2.13.0+cpu" in shown and torch["reason"] in shown
    if not answer["host"]["devices"]:
        assert shown.startswith("This node has no GPU.\nfits ")


def test_check_after_an_update_to_a_build_for_cuda(user, tool, torch_build, work):
    """Edits version.py, in a copy, to say what the CUDA wheel's says, because that wheel has several gigabytes."""
    prefix = user.copy(torch_build[0], work / "torch", work / "torch")
    file = prefix / SITE / "torch/version.py"
    edit = f"sed -i \"s/+cpu'/+cu126'/; s/^cuda:.*/cuda: Optional[str] = '12.6'/\" {file}"
    user.run(str(tool), "update", str(prefix), "--", "sh", "-c", edit)
    assert accelerators(prefix)[0]["toolkit"] == "12.6" and accelerators(prefix)[0]["lowest_driver"] == "525.60.13"
    answer = check(user, tool, prefix)
    (torch,) = answer["packages"]
    assert torch["version"] == "2.13.0+cu126" and torch["built_for"] == "cuda"
    if not answer["host"]["devices"]:
        assert not torch["fits"]
        assert torch["reason"] == "It was built for CUDA 12.6, and this node has no GPU."


def test_check_without_such_packages(user, tool, small):
    done = user.run(str(tool), "check", str(small))
    assert "none of the packages that are checked" in done.stdout
    assert accelerators(small) is None


def test_check_of_what_is_no_installation(user, tool):
    done = user.run(str(tool), "check", "/usr", check=False)
    assert done.returncode == 2 and "/usr: this is not an installation" in done.stderr


def test_doctor_tells_of_gpus(user, tool, small):
    devices = check(user, tool, small)["host"]["devices"]
    findings = json.loads(user.run(str(tool), "doctor", "--json").stdout)["findings"]
    gpus = [one for one in findings if one["name"].endswith("GPUs")]
    assert gpus and all(one["verdict"] in ("ok", "note") for one in gpus)
    assert [one["found"] for one in gpus] == ["none on this machine"] if not devices else gpus[0]["name"] != "GPUs"
