// Images mounted by FUSE, with the server process that answers for them; or one by the kernel, which needs
// none.
#pragma once

#include "image/layers.h"
#include "runtime/cold_start.h"
#include "runtime/fuse_connection.h"
#include "runtime/server_deaths.h"
#include "runtime/server_statistics.h"
#include "util/error.h"
#include "util/fd.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace containerize::runtime {

class ServedMount {
public:
    enum class Use {
        tree,
        root ///< it becomes the root directory, which cannot be unmounted: its server ends when nothing is
             ///< left of it
    };
    /// Mounts `images` (the lowest first) at `mount_point` and starts the server. The caller is the
    /// supervisor, single-threaded and in the namespaces that the mount is for.
    static Result<ServedMount> mount(std::vector<image::Layers::ImageFile> images,
                                     const std::filesystem::path& mount_point, Use use = Use::tree,
                                     ColdStart cold_start = {});
    /// One image, by mount_by_kernel(): server() is 0, and nothing is counted.
    static Result<ServedMount> mount_without_server(const image::Layers::ImageFile& image,
                                                    const std::filesystem::path& mount_point);
    ServedMount(ServedMount&&) = default;
    ServedMount& operator=(ServedMount&&) = default;

    /// Shows the same at another path.
    Status show_at(const std::string& path);
    /// Where it is shown; the first is where it was mounted.
    [[nodiscard]] const std::vector<std::string>& mount_points() const { return mount_points_; }
    /// Whether the mount is still at its first path: it moves with the directory that it lies on.
    [[nodiscard]] bool in_place() const;

    [[nodiscard]] pid_t server() const { return server_; }
    /// Of all servers that it had; null if it needs none.
    [[nodiscard]] const ServerStatistics* statistics() const { return statistics_.get(); }
    /// After the server died, with `status` as wait() has it. Fails where no successor can answer what it has
    /// not: before Linux 6.9, where the images cannot be opened any more, or where servers do nothing but
    /// die. The mount is then given up, and its processes see an error instead of waiting for ever.
    Status mourn(int status);
    /// From when on a successor is wanted, if one is.
    [[nodiscard]] std::optional<ServerDeaths::Clock::time_point> successor_due() const { return due_; }
    /// Starts it, on the same descriptors, once it is due, and has the kernel hand out again what its
    /// predecessor had not answered. Fails as mourn() does.
    Status revive_when_due();
    /// Requests that are failed, because servers died of them.
    [[nodiscard]] std::size_t refused() const { return deaths_.suspects().refused.size(); }
    /// Whether there is a server, or will be one.
    [[nodiscard]] bool is_served() const { return server_ > 0 || due_; }
    /// Takes the mount away from this namespace. Files that are open stay readable; the server ends after the
    /// last one.
    void unmount();
    /// The server has ended, as it does when nothing uses the mount any more.
    void forget_server() { server_ = 0; }
    /// In a process that is not this mount's server: lets go of its descriptors.
    void close_devices() { connection_.devices.clear(); }

private:
    ServedMount() = default;
    Status start_server();
    void give_up();
    /// Where that can be had; fails if the server is dead for good.
    Status cover_by_overlay();
    [[noreturn]] void serve(Fd leaving);
    /// A server that cannot serve; the supervisor will say why.
    [[noreturn]] void end_server(const std::string& why);
    [[noreturn]] void outlive_supervisor(const std::string& mounts);

    Use use_ = Use::tree;
    bool revived_ = false;
    dev_t device_ = 0; ///< of what is shown
    dev_t below_ = 0;  ///< of the FUSE mount under it, or of the kernel's
    std::vector<std::string> mount_points_;
    unsigned stacked_ = 1;                         ///< mounts at the first of them
    std::vector<image::Layers::ImageFile> images_; ///< the lowest first
    ColdStart cold_start_;
    std::shared_ptr<ServerStatistics> statistics_;
    FuseConnection connection_;
    pid_t server_ = 0;
    ServerDeaths deaths_;
    std::optional<ServerDeaths::Clock::time_point> due_;
};

/// Called in every new server process, before it serves: to let go of what only the supervisor needs.
void set_server_cleanup(void (*cleanup)(void*), void* argument);

/// Whether `process` is in the caller's mount namespace.
bool is_in_this_namespace(pid_t process);
/// The name of the caller's mount namespace.
std::string mount_namespace();
/// Whether a process other than sessions' own runs in that mount namespace.
bool namespace_in_use(const std::string& mounts);

} // namespace containerize::runtime
