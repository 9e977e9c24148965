#include "../data.h"
#include "../temporary.h"
#include "spec/spec.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace containerize::spec {

namespace {

using namespace std::string_literals;

struct Case {
    SpecKind kind;
    std::string name;
    std::string content;
};

const Case cases[] = {
    {SpecKind::requirements, "requirements.txt", "# deps\nnumpy==2.0\nrequests\n"},
    {SpecKind::requirements, "requirements.txt", "\xEF\xBB\xBFnumpy\r\n"},
    {SpecKind::requirements, "requirements.txt", "\xFF\xFEn\0u\0m\0p\0y\0\r\0\n\0"s},
    {SpecKind::requirements, "deps", "--index-url https://host/simple\n-e .\n"},
    {SpecKind::requirements, "latin", "caf\xE9\n"},
    {SpecKind::requirements, "x.txt", "https://host/numpy-1.0-py3-none-any.whl\n"},
    {SpecKind::requirements, "x.txt", "https://host/sdist-1.0.tar.bz2\n"},
    {SpecKind::environment_yaml, "environment.yml",
     "name: x\nchannels:\n  - conda-forge\ndependencies:\n  - python\n"},
    {SpecKind::environment_yaml, "any.txt", "dependencies:\n- numpy\n"},
    {SpecKind::environment_yaml, "vars.yml", "variables:\n  A: b\n"},
    {SpecKind::conda_explicit, "x.txt",
     "# platform: linux-64\n@EXPLICIT\nhttps://c/linux-64/p-1-0.conda#ab\n"},
    {SpecKind::conda_explicit, "x.txt", "https://conda.anaconda.org/conda-forge/noarch/p-1-0.tar.bz2\n"},
    {SpecKind::conda_list_export, "requirements.txt",
     "# platform: linux-64\nnumpy=1.26.4=py311h_0\nxz=5.2=0\n"},
    {SpecKind::conda_lock, "conda-lock.yml", "version: 1\nmetadata:\n  channels: []\npackage:\n- name: x\n"},
    {SpecKind::pixi_lock, "pixi.lock", "version: 6\nenvironments:\n  default: {}\npackages:\n- conda: x\n"},
    {SpecKind::lock, "containerize.lock", "{\n  \"containerize-lock\": 1\n}\n"},
    {SpecKind::pixi_toml, "pixi.toml",
     "[project]\nname = \"x\"\nchannels = [\"conda-forge\"]\n[dependencies]\n"},
    {SpecKind::pixi_toml, "pixi.toml", "[workspace]\n[tool.x]\n"},
    {SpecKind::pylock, "pylock.toml", "lock-version = \"1.0\"\n[[packages]]\nname = \"x\"\n"},
    {SpecKind::pyproject, "pyproject.toml",
     "[build-system]\nrequires = [\"hatchling\"]\n[project]\nname = \"x\"\n"},
    {SpecKind::pixi_toml, "pyproject.toml", "[tool.pixi.workspace]\nchannels = [\"conda-forge\"]\n"},
    {SpecKind::pyproject, "pyproject.toml",
     "[project]\nname = \"x\"\n[tool.pixi.workspace]\nchannels = [\"conda-forge\"]\n"},
    {SpecKind::pyproject, "pyproject.toml", "[dependency-groups]\n"},
    {SpecKind::script, "x.py", "# /// script\n# dependencies = []\n# ///\nimport os\n"},
    {SpecKind::uv_lock, "uv.lock", "version = 1\n"},
    {SpecKind::poetry_lock, "poetry.lock", "package = []\n"},
    {SpecKind::pdm_lock, "pdm.lock",
     "[metadata]\nlock_version = \"4.5.0\"\ncontent_hash = \"sha256:a\"\n\n[[package]]\nname = \"a\"\n"},
    {SpecKind::pylock, "pylock.x.toml", "packages = []\n"},
    {SpecKind::toml, "x.toml", "a = 1\n"},
    {SpecKind::uv_lock, "uv.lock", "version = 1\n[[package]]\nname = \"x\"\n[package.metadata]\n"},
    {SpecKind::poetry_lock, "poetry.lock",
     "[[package]]\nname = \"x\"\n\n[metadata]\nlock-version = \"2.0\"\n"},
    {SpecKind::pipfile, "Pipfile", "[[source]]\nurl = \"u\"\n[packages]\nx = \"*\"\n"},
    {SpecKind::pipfile_lock, "Pipfile.lock", "{\n  \"_meta\": {\"hash\": {}, \"pipfile-spec\": 6}\n}\n"},
    {SpecKind::setup_script, "setup.py", "from setuptools import setup\nsetup(name='x')\n"},
    {SpecKind::setup_script, "setup.cfg", "[metadata]\nname = x\n[options]\ninstall_requires =\n  numpy\n"},
    {SpecKind::conda_recipe, "meta.yaml", "{% set v = 1 %}\npackage:\n  name: x\nrequirements:\n  run: []\n"},
    {SpecKind::container_recipe, "Dockerfile", "# syntax=x\nARG V=1\nFROM python:$V\nRUN pip install x\n"},
    {SpecKind::container_recipe, "x.def", "Bootstrap: docker\nFrom: ubuntu\n%post\n"},
    {SpecKind::archive, "x.whl", "PK\x03\x04rest"},
    {SpecKind::archive, "x.sif", "#!/usr/bin/env run-singularity\n\0\0SIF"s},
    {SpecKind::html, "requirements.txt", "\n<!DOCTYPE html>\n<html>\n"},
    {SpecKind::empty, "requirements.txt", "\n  # nothing\n"},
    {SpecKind::empty, "requirements.txt", ""},
    {SpecKind::unknown, "train.py", "import torch\nprint(torch.__version__)\n"},
    {SpecKind::unknown, "x", "{\"a\": 1}\n"},
};

} // namespace

TEST(Recognise, EachKindByItsContent) {
    for (const auto& one : cases)
        EXPECT_EQ(describe(recognise(one.content, one.name)), describe(one.kind)) << one.name << "\n"
                                                                                  << one.content;
}

TEST(Formats, EachKindHasAnEntryThatCanBeUsed) {
    std::set<std::string_view> descriptions;
    EXPECT_EQ(formats().size(), static_cast<std::size_t>(SpecKind::unknown) + 1);
    for (std::size_t i = 0; i <= static_cast<std::size_t>(SpecKind::unknown); ++i) {
        const auto kind = static_cast<SpecKind>(i);
        const auto& format = format_of(kind);
        ASSERT_EQ(format.kind, kind);
        EXPECT_TRUE(descriptions.insert(format.description).second) << format.description;
        EXPECT_TRUE(format.is != nullptr || format.may_be != nullptr) << format.description;
        EXPECT_TRUE(std::ranges::any_of(cases, [kind](const Case& one) { return one.kind == kind; }))
            << "no case above is " << format.description;
    }
}

TEST(Recognise, LongLinesAreNoTrouble) {
    const std::string letters(4U << 20U, 'a');
    EXPECT_EQ(recognise("[" + letters, "x"), SpecKind::unknown);
    EXPECT_EQ(recognise(letters, "x"), SpecKind::requirements);
}

TEST(RecogniseSupported, Messages) {
    const test::TemporaryDirectory directory;
    const auto message = [](const fs::path& file) {
        const auto kind = recognise_supported(file);
        if (kind) return std::string("accepted");
        EXPECT_EQ(kind.error().fault, Fault::input);
        return to_string(kind.error());
    };
    const auto refused = [&](const fs::path& file, const std::string& kind, const std::string& advice) {
        EXPECT_EQ(message(file), file.string() + ": this is " + kind + ", which cannot be built\n" + advice);
    };
    EXPECT_EQ(message(directory.write("requirements.txt", "numpy\n")), "accepted");
    const auto any = "Give a conda environment.yml or a pip requirements.txt.";
    EXPECT_EQ(message(directory.write("e.yml", "dependencies:\n- x\n")), "accepted");
    EXPECT_EQ(message(directory.write("x.lock", "{\"containerize-lock\": 1}")), "accepted");
    EXPECT_EQ(message(directory.write("explicit", "@EXPLICIT\n")), "accepted");
    EXPECT_EQ(message(directory.write("uv.lock", "[[package]]\n")), "accepted");
    refused(directory.write("Pipfile", "[packages]\n"), "a Pipfile",
            "Lock it with `pipenv lock`, and give the Pipfile.lock.");
    EXPECT_EQ(message(directory.write("pixi.toml", "[workspace]\n")), "accepted");
    refused(directory.write("x.toml", "a = 1\n"), "a TOML file of unknown kind",
            "Give a pylock.toml or a pyproject.toml.");
    refused(directory.write("x.whl", "PK\x03\x04"), "an archive or other binary file",
            "To install a package file, list its path in a requirements file.");
    refused(directory.write("page", "<html>"), "a web page",
            "If you downloaded it, use the URL of the file itself, not of the page that shows it.");
    refused(directory.write("train.py", "import os\n"), "a file of unknown kind", any);

    const auto empty = directory.write("empty.txt", "# none\n");
    EXPECT_EQ(message(empty),
              empty.string() +
                  ": the file contains no requirement\nList one package per line, such as `numpy`.");
    EXPECT_EQ(message(directory.path()), directory.path().string() +
                                             ": this is a directory\nGive a file in it, such as "
                                             "environment.yml, pixi.toml or requirements.txt.");
    EXPECT_EQ(message("/no/such.txt"),
              "/no/such.txt: cannot read the environment file: No such file or directory");
    const auto pipe = directory / "pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_EQ(message(pipe),
              pipe.string() +
                  ": this is not a regular file\nGive a conda environment.yml or a pip requirements.txt.");
    const auto large = directory.write("large.img", "");
    fs::resize_file(large, 1U << 30U);
    refused(large, "an archive or other binary file",
            "To install a package file, list its path in a requirements file.");
    const auto text = directory.write("large.txt", std::string((16U << 20U) + 1, 'a'));
    EXPECT_EQ(message(text), text.string() + ": this file is too large: the limit is 16 MiB");
    directory.write("large.txt", std::string(1'000'001, '\n'));
    EXPECT_EQ(message(text), text.string() + ": this file is too large: the limit is 1,000,000 lines");
    directory.write("large.txt", std::string(1'000'001, '\r'));
    EXPECT_EQ(message(text), text.string() + ": this file is too large: the limit is 1,000,000 lines");
    std::string of_windows;
    for (int i = 0; i < 1'000'000; ++i)
        of_windows += "\r\n";
    directory.write("large.txt", of_windows + "six");
    EXPECT_EQ(message(text), "accepted");
    const std::string hint = "\nLock fewer environments or platforms.";
    const auto lock =
        directory.write("pixi.lock", "version: 6\nenvironments:\n" + std::string(16U << 20U, ' '));
    EXPECT_EQ(message(lock), lock.string() + ": this file is too large: the limit is 16 MiB" + hint);
    directory.write("pixi.lock", "version: 6\nenvironments:\npackages:\n" + std::string(1'000'001, '\n'));
    EXPECT_EQ(message(lock), lock.string() + ": this file is too large: the limit is 1,000,000 lines" + hint);
}

// Files that people wrote.
TEST(RealData, CondaFilesAreRecognised) {
    const auto kind_of = [](const fs::path& file) {
        return recognise(read_file(file).value(), file.filename().string());
    };
    // By content, under a name that tells nothing.
    for (const auto& file : test::data_files("env-yml", ""))
        EXPECT_EQ(describe(recognise(read_file(file).value(), "x.yml")), "a conda environment file") << file;
    EXPECT_EQ(kind_of(test::data_directory / "lockfiles/conda-lock-v1-numpy.yml"), SpecKind::conda_lock);
    EXPECT_EQ(kind_of(test::data_directory / "lockfiles/pixi-v4-python.lock"), SpecKind::pixi_lock);
}

} // namespace containerize::spec
