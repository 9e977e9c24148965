// What is mounted where in a root, decided before anything is mounted (root.h).
#pragma once

#include "core/error.h"
#include "root/root.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace containerize::root {

struct RootMount {
    std::string source = {}; ///< empty: a new tmpfs
    std::string target;
    bool directory = true;
    bool read_only = false;
    bool optional = false;   ///< a failure is only noted
    bool takes_name = false; ///< hides a link of that name in the base instead of following it
    [[nodiscard]] bool in_memory() const { return source.empty(); }
};

/// The mounts of a root in their order, and the links that it needs.
class RootPlan {
public:
    /// `own` becomes `own_directory`.
    RootPlan(const RootRequest& request, std::string own) : request_(request), own_(std::move(own)) {}

    /// Adds what the request asks for.
    Status make();

    /// `optional`: not asked for, so that a failure is only noted.
    Status add_bind(const manifest::Bind& bind, bool optional = false);

    [[nodiscard]] const std::vector<RootMount>& mounts() const { return mounts_; }
    /// Top-level links of the host, as path and target.
    [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& links() const { return links_; }
    [[nodiscard]] std::vector<std::string>& notes() { return notes_; }

private:
    /// Whether `path` shows, writably, what the host has there, given the mounts added so far.
    [[nodiscard]] bool is_seen(std::string_view path) const;
    void add_if_there(const std::string& source, const std::string& target);
    void add_settings(const std::string& source, const std::string& target);
    void add_host();
    void add_isolated();

    const RootRequest& request_;
    std::string own_;
    std::vector<RootMount> mounts_;
    std::vector<std::pair<std::string, std::string>> links_;
    std::vector<std::string> notes_;
};

} // namespace containerize::root
