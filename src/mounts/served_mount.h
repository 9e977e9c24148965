// A mount of images: by FUSE with a server process, or by the kernel without one.
#pragma once

#include "core/error.h"
#include "core/fd.h"
#include "core/filesystem.h"
#include "fuse/connection.h"
#include "fuse/server_deaths.h"
#include "fuse/server_statistics.h"
#include "image/layers.h"
#include "mounts/cold_start.h"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

namespace containerize::mounts {

class [[nodiscard]] ServedMount {
public:
    enum class Use {
        tree,
        root ///< becomes the root directory, which cannot be unmounted: its server ends with its last user
    };
    /// Mounts `images` (the lowest first) at `mount_point` and starts the server. The caller is the
    /// supervisor, single-threaded and in the namespaces that the mount is for.
    static Result<ServedMount> mount(std::vector<image::Layers::ImageFile> images,
                                     const std::filesystem::path& mount_point, Use use = Use::tree,
                                     ColdStart cold_start = {});
    /// Mounts one image by mount_by_kernel(): server() is 0, and there are no statistics.
    static Result<ServedMount> mount_without_server(const image::Layers::ImageFile& image,
                                                    const std::filesystem::path& mount_point);
    ServedMount(ServedMount&&) = default;
    ServedMount& operator=(ServedMount&&) = default;

    /// Shows the same mount at another path.
    Status show_at(const std::string& path);
    /// The paths where it is shown, the first one being where it was mounted.
    [[nodiscard]] const std::vector<std::string>& mount_points() const { return mount_points_; }
    /// Whether the mount is still at all of its paths: it moves with the directory that it lies on.
    [[nodiscard]] bool in_place() const;
    /// The same as far as the kernel's table of mounts tells, which asks no filesystem. A mount over it does
    /// not count.
    [[nodiscard]] bool in_place(std::span<const Mounted> table) const;

    /// Whether it has no overlay because the images were read too slowly. It works without one, but programs
    /// are slower.
    [[nodiscard]] bool overlay_timed_out() const { return overlay_timed_out_; }

    [[nodiscard]] pid_t server() const { return server_; }
    /// Counters of all its servers together; null without a server.
    [[nodiscard]] const fuse::ServerStatistics* statistics() const { return statistics_.get(); }
    /// Handles the death of the server; `status` is from wait(). Fails if no successor can do better: if the
    /// images cannot be opened any more, or if servers do nothing but die. The mount is then given up, so
    /// that processes see an error instead of waiting for ever.
    Status on_server_exit(int status);
    /// When to start a successor, if one is wanted.
    [[nodiscard]] std::optional<fuse::ServerDeaths::Clock::time_point> successor_due() const { return due_; }
    /// Once it is due, starts a successor on the same descriptors, and has the kernel resend what its
    /// predecessor had not answered. Before Linux 6.9, mounts the images again instead, over the old mount:
    /// requests and open files of that one fail. Fails as on_server_exit() does.
    Status revive_when_due();
    /// How many requests are refused because servers died of them.
    [[nodiscard]] std::size_t refused() const { return deaths_.suspects().refused.size(); }
    /// Whether there is a server, or will be one.
    [[nodiscard]] bool is_served() const { return server_ > 0 || due_; }
    /// Removes the mount from this namespace. Open files stay readable; the server ends after the last one.
    void unmount();
    /// To be called when the server has ended, as it does when nothing uses the mount any more.
    void forget_server() { server_ = 0; }
    /// Closes the mount's descriptors, in a process that is not its server.
    void close_devices() { connection_.devices.clear(); }

private:
    ServedMount() = default;
    Status start_server();
    /// Starts the server of a new mount, and completes the mount.
    Status set_up(std::chrono::milliseconds longest_wait_for_cover);
    Status replace_server();
    [[nodiscard]] bool may_be_mounted_again() const;
    [[nodiscard]] Result<std::vector<Fd>> open_mount_points() const;
    Status mount_again();
    Status bind_at(const std::string& path);
    void give_up();
    /// Covers the mount by an overlay if the kernel allows it. Fails only if the server is dead for good.
    Status cover_by_overlay(std::chrono::milliseconds longest_wait);
    [[noreturn]] void serve(Fd leaving);
    /// Ends a server that cannot serve; the supervisor will report `why`.
    [[noreturn]] void end_server(const std::string& why);
    [[noreturn]] void serve_without_supervisor(const std::string& mounts);

    Use use_ = Use::tree;
    bool revived_ = false;
    dev_t device_ = 0;      ///< of what is visible
    std::set<dev_t> below_; ///< of the FUSE mounts below it, dead ones included, or of the kernel's mount
    std::set<dev_t> shown_; ///< of all that was visible, which dead mounts still are
    bool overlay_timed_out_ = false;
    std::vector<std::string> mount_points_;
    std::set<std::string> listed_points_;          ///< the same, as the table of mounts names them
    std::vector<image::Layers::ImageFile> images_; ///< the lowest first
    ColdStart cold_start_;
    std::shared_ptr<fuse::ServerStatistics> statistics_;
    fuse::FuseConnection connection_;
    pid_t server_ = 0;
    fuse::ServerDeaths deaths_;
    std::optional<fuse::ServerDeaths::Clock::time_point> due_;
};

/// Sets a function that each new server process calls first, to release what only the supervisor needs.
void set_server_cleanup(std::function<void()> cleanup);

/// Whether a process that is not a session's own runs in that mount namespace.
bool namespace_in_use(const std::string& mounts);

} // namespace containerize::mounts
