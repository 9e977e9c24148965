#include "../good.h"
#include "../temporary.h"
#include "core/filesystem.h"
#include "inputs/tykky_installation.h"

#include <cstdlib>

#include <gtest/gtest.h>

namespace containerize::inputs {

namespace {

using test::TemporaryDirectory;

class Tykky : public testing::Test {
protected:
    void SetUp() override {
        directory_.write("tree/env1/bin/tool", "#!/bin/sh\n");
        directory_.write("made/common.sh", "");
        const auto command = "mksquashfs '" + (directory_ / "tree").string() + "' '" +
                             (directory_ / "made/img.sqfs").string() +
                             "' -quiet -no-progress -comp zstd >/dev/null";
        ASSERT_EQ(std::system(command.c_str()), 0);
    }
    [[nodiscard]] Result<TykkyInstallation> read(const std::string& settings) const {
        directory_.write("made/share/conf.yaml", settings);
        return read_tykky_installation(directory_ / "made");
    }
    TemporaryDirectory directory_;
};

constexpr const char* usual = "env_name: env1\nsqfs_image: img.sqfs\ninstallation_path: /CSC_TYKKY_x/\n";

TEST_F(Tykky, KindsAndTheirEnvironments) {
    const auto venv =
        test::good(read(std::string(usual) + "mode: venv\ncontainer_src: docker://debian:12\n"));
    EXPECT_EQ(venv.path_inside, "/CSC_TYKKY_x");
    EXPECT_EQ(venv.environments, std::vector<fs::path>{"env1"});
    EXPECT_EQ(venv.container, "docker://debian:12");
    const auto conda = test::good(read(std::string(usual) + "mode: conda\n"));
    EXPECT_EQ(conda.environments, (std::vector<fs::path>{"miniforge/envs/env1", "miniconda/envs/env1"}));
    const auto wrapped =
        test::good(read("mode: wrapdisk\nsqfs_image: img.sqfs\ninstallation_path: /appl/tool\n"));
    EXPECT_EQ(wrapped.environments, std::vector<fs::path>{"."});
}

TEST_F(Tykky, WrapperPathsAreThoseOfTheImage) {
    const auto made = test::good(read(std::string(usual) +
                                      "mode: venv\nwrapper_paths: [/CSC_TYKKY_x/tools/bin/, /usr/bin, other, "
                                      "/CSC_TYKKY_x/../etc, /CSC_TYKKY_xy/bin]\n"));
    EXPECT_EQ(made.wrapper_paths, (std::vector<std::string>{"tools/bin", "other"}));
}

TEST_F(Tykky, SettingsAreNotTrusted) {
    for (const char* settings :
         {"", "[]", "mode: venv\n", "mode: [venv]\nenv_name: env1\n",
          "mode: venv\nenv_name: ..\nsqfs_image: img.sqfs\ninstallation_path: /x\n",
          "mode: venv\nenv_name: env1\nsqfs_image: ../made/img.sqfs\ninstallation_path: /x\n",
          "mode: venv\nenv_name: env1\nsqfs_image: common.sh\ninstallation_path: /x\n",
          "mode: venv\nenv_name: env1\nsqfs_image: img.sqfs\ninstallation_path: x\n",
          "mode: venv\nenv_name: env1\nsqfs_image: img.sqfs\ninstallation_path: /x/..\n",
          "mode: wrapcont\nsqfs_image: img.sqfs\ninstallation_path: /x\n"})
        EXPECT_FALSE(read(settings)) << settings;
}

} // namespace

} // namespace containerize::inputs
