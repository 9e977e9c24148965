// Puts an injection together; each vendor's part says what belongs into it.
#pragma once

#include "gpu/elf.h"
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
    /// The value of a variable of the caller's; nothing if it is not set.
    [[nodiscard]] std::optional<std::string> variable(const std::string& name) const;
    /// Whether the image's own library of this name will be found.
    [[nodiscard]] bool image_has(const std::string& name) const;
    /// Whether it is a program or library for the image's kind of processor.
    [[nodiscard]] bool is_for_image(const std::string& path) const;
    /// Whether the image could use this library of the host's; if not, a note says why.
    bool can_load(const std::string& path);

    void note(std::string text) { injection_.notes.push_back(std::move(text)); }
    /// A library of the host, at library_directory under its file's name, with links of its other names.
    /// False, with a note, if the image could not use it.
    bool add_library(const std::string& path);
    /// Libraries by their names, and all that they need, as far as the image has none of that name. What is
    /// looked for in vain is left out.
    void add_with_needed(const std::vector<std::string>& names);
    void add_program(const std::string& path);
    /// A file or socket, at `target` (by default where the host has it), unless the image has one there.
    void add_file(const std::string& path, const std::string& target = {});
    /// A device node, or a directory of them; left out where the host's are inside already.
    void add_node(const std::string& path);
    void add_link(std::string_view name, std::string_view target);
    void change(runtime::EnvironmentChange change) { injection_.environment.push_back(std::move(change)); }

    Injection finish();

private:
    /// Why the image cannot load this; empty if it can.
    [[nodiscard]] std::string incompatibility(const Elf& elf);
    /// Versions that the image's system library of this name defines; nothing if there is no such library.
    const std::optional<std::set<std::string>>& image_versions(const std::string& library);
    void bind(const std::string& real_path, std::string target, bool read_only);

    const Request& request_;
    DirectoryView host_;
    Libraries libraries_, image_libraries_;
    std::uint16_t machine_ = 0; ///< that the image is for; 0 if it has no C library of GNU's
    std::map<std::string, std::optional<std::set<std::string>>> image_versions_;
    std::set<std::string> targets_; ///< of binds
    std::map<std::string, std::string> links_;
    bool has_libraries_ = false, has_programs_ = false;
    Injection injection_;
};

// What each vendor's devices need.
void add_nvidia(Injector& injector, const Host& host);
void add_amd(Injector& injector, const Host& host);
void add_intel(Injector& injector, const Host& host);

} // namespace containerize::gpu
