#include "session/logind.h"
#include "temporary.h"

#include <string>

#include <gtest/gtest.h>

namespace containerize::session {
namespace {

namespace fs = std::filesystem;

class Logind : public testing::Test {
protected:
    void write(const char* path, const std::string& text) const { root_.write(path, text); }
    [[nodiscard]] const fs::path& root() const { return root_.path(); }

private:
    test::TemporaryDirectory root_;
};

TEST_F(Logind, EndsProcessesWhereNothingIsSaid) {
    EXPECT_TRUE(logins_end_their_processes(root()));
}

TEST_F(Logind, CommentsInItsOwnFileSayWhatTheDefaultIs) {
    write("etc/systemd/logind.conf", "[Login]\n#KillUserProcesses=no\n");
    EXPECT_FALSE(logins_end_their_processes(root()));
    write("etc/systemd/logind.conf", "[Login]\n KillUserProcesses = yes \n#KillUserProcesses=no\n");
    EXPECT_TRUE(logins_end_their_processes(root()));
}

TEST_F(Logind, DropInsCountInTheOrderOfTheirNames) {
    write("usr/lib/systemd/logind.conf", "KillUserProcesses=no\n");
    EXPECT_FALSE(logins_end_their_processes(root()));
    write("etc/systemd/logind.conf.d/10-site.conf", "KillUserProcesses=yes\n");
    EXPECT_TRUE(logins_end_their_processes(root()));
    write("usr/lib/systemd/logind.conf.d/20-vendor.conf", "KillUserProcesses=no\n");
    EXPECT_FALSE(logins_end_their_processes(root()));
    // Of two files with one name, the administrator's counts.
    write("etc/systemd/logind.conf.d/20-vendor.conf", "#KillUserProcesses=no\n");
    EXPECT_TRUE(logins_end_their_processes(root()));
    write("etc/systemd/logind.conf.d/30-note.txt", "KillUserProcesses=no\n");
    EXPECT_TRUE(logins_end_their_processes(root()));
}

} // namespace
} // namespace containerize::session
