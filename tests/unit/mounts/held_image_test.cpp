// A process that holds copies of images for other processes of its node.
#include "core/fd_message.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "good.h"
#include "happens.h"
#include "image/writer.h"
#include "mounts/held_image.h"
#include "temporary.h"
#include "util/digest.h"

#include <array>
#include <atomic>
#include <csignal>
#include <new>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

namespace containerize::mounts {
namespace {

/// Does what `containerize stage --node` does.
class Holder {
public:
    Holder(const manifest::Manifest& manifest, const fs::path& prefix, manifest::StagePlace place,
           const std::vector<fs::path>& brought = {}) {
        std::array<int, 2> ends{};
        EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
        process_ = fork();
        if (process_ == 0) run(manifest, prefix, place, brought, ends[1]);
        close(ends[1]);
        said_.reset(ends[0]);
    }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;
    ~Holder() { end(SIGKILL); }

    /// Waits until it holds the images: "" or its notes on success, otherwise the error.
    std::string wait() {
        std::string text;
        std::array<char, 1000> buffer{};
        for (ssize_t got = 0; (got = read(said_.get(), buffer.data(), buffer.size())) > 0;)
            text.append(buffer.data(), static_cast<std::size_t>(got));
        return text;
    }
    void end(int signal) {
        if (process_ > 0) {
            kill(process_, signal);
            waitpid(process_, nullptr, 0);
        }
        process_ = -1;
    }

private:
    [[noreturn]] static void run(const manifest::Manifest& manifest, const fs::path& prefix,
                                 manifest::StagePlace place, const std::vector<fs::path>& brought, int say) {
        catch_interrupts();
        auto holder = ImageHolder::hold(manifest, prefix, place, brought);
        std::string text = holder ? "" : to_string(holder.error());
        if (holder)
            for (const auto& note : holder->notes())
                text += note;
        if (write(say, text.data(), text.size()) < 0) _exit(2);
        close(say);
        if (holder) holder->serve();
        _exit(0);
    }

    pid_t process_ = -1;
    Fd said_;
};

class HeldImages : public testing::TestWithParam<manifest::StagePlace> {
protected:
    HeldImages() {
        fs::create_directory(prefix());
        for (const std::string name : {"image", "layer"}) {
            directory_.write("tree-" + name + "/file", name + directory_.path().string()); // unique content
            EXPECT_TRUE(image::write_tree(directory_ / ("tree-" + name), prefix() / name, {}, 022));
            auto& image = name == "image" ? manifest_.image : manifest_.layers.emplace_back();
            const auto bytes = bytes_of(name);
            image = {.file = name, .size = bytes.size(), .sha256 = sha256(bytes)};
        }
        bytes_ = bytes_of("image");
    }
    [[nodiscard]] std::string bytes_of(const std::string& name) const {
        return read_file(prefix() / name).value_or("");
    }
    /// Keeps the size and the head of the image.
    void spoil(const std::string& name) const {
        auto bytes = bytes_of(name);
        bytes[bytes.size() / 2] ^= 1;
        directory_.write("prefix/" + name, bytes);
    }
    [[nodiscard]] fs::path prefix() const { return directory_ / "prefix"; }
    [[nodiscard]] std::optional<Fd> held(const manifest::ImageFile& image) const {
        return held_image(image.sha256, image.size);
    }
    [[nodiscard]] std::string text_of(const manifest::ImageFile& image) const {
        const auto file = held(image);
        std::string text(100'000, '\0');
        const auto got = file ? pread(file->get(), text.data(), text.size(), 0) : 0;
        text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
        return text;
    }
    /// Where a holder of the image listens.
    [[nodiscard]] std::pair<sockaddr_un, socklen_t> address() const {
        sockaddr_un name{};
        name.sun_family = AF_UNIX;
        const auto text = "containerize/" + std::to_string(geteuid()) + "/" + manifest_.image.sha256;
        text.copy(name.sun_path + 1, sizeof name.sun_path - 1);
        return {name, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size())};
    }

    test::TemporaryDirectory directory_;
    manifest::Manifest manifest_;
    std::string bytes_; ///< of the image
};

std::atomic<unsigned>* interruptions = nullptr; ///< shared with other processes

TEST_P(HeldImages, AreFoundForAsLongAsTheirHolderLives) {
    EXPECT_FALSE(held(manifest_.image));
    Holder holder(manifest_, prefix(), GetParam());
    ASSERT_EQ(holder.wait(), "");
    EXPECT_EQ(text_of(manifest_.image), bytes_);
    EXPECT_EQ(text_of(manifest_.layers[0]), bytes_of("layer"));
    EXPECT_FALSE(held_image(manifest_.image.sha256, manifest_.image.size + 1));
    EXPECT_FALSE(held_image(sha256("another"), manifest_.image.size));
    const auto kept = test::good(held(manifest_.image));
    EXPECT_LT(write(kept.get(), "x", 1), 0) << "no session changes what others read";
    holder.end(SIGTERM);
    EXPECT_FALSE(held(manifest_.image));
    char byte = 0;
    EXPECT_EQ(pread(kept.get(), &byte, 1, 0), 1) << "what a session has stays";
}

TEST_P(HeldImages, AreSharedByTwoHolders) {
    Holder first(manifest_, prefix(), GetParam());
    ASSERT_EQ(first.wait(), "");
    // The second holder cannot read the files, so it must have the first one's copy.
    const auto layer = bytes_of("layer");
    spoil("image");
    spoil("layer");
    Holder second(manifest_, prefix(), GetParam());
    ASSERT_EQ(second.wait(), "");
    first.end(SIGKILL);
    EXPECT_TRUE(test::happens([&] { return held(manifest_.image) && held(manifest_.layers[0]); }));
    EXPECT_EQ(text_of(manifest_.image), bytes_);
    EXPECT_EQ(text_of(manifest_.layers[0]), layer);
}

TEST_P(HeldImages, AreTakenFromWhatWasBrought) {
    const auto file = directory_.write("brought", bytes_);
    spoil("image");
    Holder holder(manifest_, prefix(), GetParam(), {file});
    ASSERT_EQ(holder.wait(), "");
    EXPECT_EQ(text_of(manifest_.image), bytes_);
    EXPECT_FALSE(fs::exists(file));
}

TEST_P(HeldImages, AreNotWhatSomebodyElseBrought) {
    const auto other = directory_.write("other", std::string(manifest_.image.size, 'x'));
    const auto link = directory_ / "link", missing = directory_ / "missing";
    fs::create_symlink(other, link);
    for (const auto& file : {other, link, missing}) {
        Holder holder(manifest_, prefix(), GetParam(), {file});
        EXPECT_NE(holder.wait(), "") << "it is said that " << file << " was of no use";
        EXPECT_NE(file == other, fs::exists(other)) << "what is the user's own goes";
        directory_.write("other", std::string(manifest_.image.size, 'x'));
        EXPECT_EQ(text_of(manifest_.image), bytes_);
    }
}

TEST_P(HeldImages, MustBeWhatWasBuilt) {
    spoil("layer");
    Holder holder(manifest_, prefix(), GetParam());
    EXPECT_TRUE(holder.wait().contains("the copy of the image differs from the image that was built"));
    EXPECT_FALSE(held(manifest_.image));
}

TEST_P(HeldImages, AreNotTakenFromAnotherUser) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
    const auto [name, size] = address();
    const pid_t other = fork();
    if (other == 0) {
        const Fd listener(socket(AF_UNIX, SOCK_STREAM, 0));
        if (setuid(65534) != 0 || bind(listener.get(), reinterpret_cast<const sockaddr*>(&name), size) != 0 ||
            listen(listener.get(), 1) != 0)
            _exit(1);
        raise(SIGSTOP);
        _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(other, &status, WUNTRACED), other);
    ASSERT_TRUE(WIFSTOPPED(status));
    EXPECT_FALSE(held(manifest_.image));
    Holder holder(manifest_, prefix(), GetParam());
    EXPECT_EQ(holder.wait(), "");
    EXPECT_FALSE(held(manifest_.image)) << "the name is the other's";
    EXPECT_TRUE(held(manifest_.layers[0]));
    kill(other, SIGKILL);
    waitpid(other, &status, 0);
    EXPECT_TRUE(test::happens([&] { return held(manifest_.image).has_value(); }));
}

// A session that starts gives signs of life from a signal handler.
TEST_P(HeldImages, AreReceivedThoughSignalsInterruptTheWait) {
    constexpr unsigned enough = 20;
    interruptions =
        new (mmap(nullptr, sizeof *interruptions, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
            std::atomic<unsigned>(0);
    struct sigaction action {
    }, before{};
    action.sa_flags = SA_RESTART;
    action.sa_handler = [](int) { ++*interruptions; };
    sigaction(SIGALRM, &action, &before);
    const auto [name, size] = address();
    const Fd listener(socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&name), size), 0);
    ASSERT_EQ(listen(listener.get(), 1), 0);
    const pid_t holder = fork();
    if (holder == 0) {
        const Fd client(accept(listener.get(), nullptr, nullptr));
        for (unsigned sent = 1; sent <= enough; ++sent) {
            kill(getppid(), SIGALRM);
            if (!test::happens([&] { return *interruptions >= sent; })) _exit(1);
        }
        const Fd image(open((prefix() / "image").c_str(), O_RDONLY));
        _exit(send_message(client.get(), "f", image.get()) ? 0 : 1);
    }
    EXPECT_TRUE(held(manifest_.image));
    int status = 0;
    EXPECT_EQ(waitpid(holder, &status, 0), holder);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(*interruptions, enough);
    sigaction(SIGALRM, &before, nullptr);
    munmap(interruptions, sizeof *interruptions);
}

INSTANTIATE_TEST_SUITE_P(Places, HeldImages,
                         testing::Values(manifest::StagePlace::local, manifest::StagePlace::ram));

} // namespace
} // namespace containerize::mounts
