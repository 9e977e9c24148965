// Collects an injection; each vendor's function adds its part.
#pragma once

#include "elf/read_elf.h"
#include "gpu/injection.h"
#include "gpu/libraries.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace containerize::gpu {

class Injector {
public:
    explicit Injector(const Request& request);

    [[nodiscard]] const Request& request() const { return request_; }
    [[nodiscard]] const TreeView& host() const { return host_; }
    [[nodiscard]] const Libraries& libraries() const { return libraries_; }
    /// A variable of the caller; nothing if it is not set.
    [[nodiscard]] std::optional<std::string> variable(const std::string& name) const;
    /// Whether programs would find a library of this name in the image.
    [[nodiscard]] bool image_has(const std::string& name) const;
    /// Whether it is a program or library for the image's architecture.
    [[nodiscard]] bool is_for_image(const std::string& path) const;
    /// Whether the image can use the host's library; adds a note if not.
    bool can_load(const std::string& path);

    void note(std::string text) { injection_.notes.push_back(std::move(text)); }
    /// Adds a library of the host to library_directory, with symlinks for its other names. Returns false and
    /// adds a note if the image cannot use it.
    bool add_library(const std::string& path);
    /// Adds libraries by name, with their dependencies, except names that the image has. Ignores libraries
    /// that the host does not have.
    void add_with_needed(const std::vector<std::string>& names);
    void add_program(const std::string& path);
    /// Adds a file or socket at `target` (default: the host's path) unless the image has a file there.
    void add_file(const std::string& path, const std::string& target = {});
    /// Adds a device node or a directory of them, unless the host's /dev is visible inside.
    void add_node(const std::string& path);
    void add_link(std::string_view name, std::string_view target);
    void change(launch::EnvironmentChange change) { injection_.environment.push_back(std::move(change)); }

    Injection finish();

private:
    /// Returns why the image cannot load the library; empty if it can.
    [[nodiscard]] std::string incompatibility(const elf::Elf& elf);
    /// The versions defined by the image's system library of this name; nothing if there is no such library.
    const std::optional<std::set<std::string>>& image_versions(const std::string& library);
    void bind(const std::string& real_path, std::string target, bool read_only);

    const Request& request_;
    DirectoryView host_;
    Libraries libraries_, image_libraries_;
    std::uint16_t machine_ = 0; ///< of the image; 0 if it has no glibc
    std::map<std::string, std::optional<std::set<std::string>>> image_versions_;
    std::set<std::string> targets_; ///< of binds
    std::map<std::string, std::string> links_;
    bool has_libraries_ = false, has_programs_ = false;
    Injection injection_;
};

} // namespace containerize::gpu
