#include "cluster/job_script.h"

#include "core/text.h"
#include "util/user_text.h"

#include <algorithm>
#include <map>

namespace containerize::cluster {

namespace {

std::map<std::string, std::string, std::less<>> values_of(const JobRequest& request, const Site& site) {
    const auto tasks = request.gpus == 0 ? 1 : request.gpus * site.devices_per_gpu; // of a node
    return {{"NAME", request.name},
            {"PREFIX", request.prefix},
            {"PROGRAM", request.program},
            {"SITE_EXPORT", "export CONTAINERIZE_SITE=" + request.site},
            {"SITE_LINES", joined(site.job, "\n")},
            {"NODES", std::to_string(request.nodes)},
            {"GPUS", std::to_string(request.gpus)},
            {"TASKS", std::to_string(tasks)},
            {"NTASKS", std::to_string(tasks * request.nodes)}};
}

bool is_placeholder(std::string_view name) {
    return !name.empty() &&
           std::ranges::all_of(name, [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
}

Result<std::string> fill_line(std::string_view line,
                              const std::map<std::string, std::string, std::less<>>& values) {
    std::string filled;
    while (!line.empty()) {
        const auto start = line.find('@');
        filled += line.substr(0, start);
        if (start == line.npos) break;
        const auto end = line.find('@', start + 1);
        const auto name = end == line.npos ? std::string_view() : line.substr(start + 1, end - start - 1);
        // not a placeholder: "$@", "user@host"
        if (!is_placeholder(name)) {
            filled += '@';
            line.remove_prefix(start + 1);
            continue;
        }
        const auto value = values.find(name);
        if (value == values.end())
            return fail({.what = "the template contains an unknown placeholder",
                         .where = "@" + std::string(name) + "@"});
        filled += value->second;
        line.remove_prefix(end + 1);
    }
    return filled;
}

} // namespace

std::string default_kind(const JobRequest& request) {
    if (request.nodes > 1) return "torchrun";
    return request.gpus > 1 ? "standalone" : "single";
}

Result<std::string> fill_job_script(std::string_view text, const JobRequest& request, const Site& site) {
    const auto values = values_of(request, site);
    std::string script;
    for (const auto line : split_lines(text)) {
        const bool of_gpus = line.starts_with("#SBATCH") && line.find("@GPUS@") != line.npos;
        if (of_gpus && request.gpus == 0) continue;
        if (line == "@SITE_LINES@" && site.job.empty()) continue;
        if (line == "@SITE_EXPORT@" && request.site.empty()) continue;
        const auto filled = TRY(fill_line(line, values));
        script += filled + "\n";
    }
    return script;
}

} // namespace containerize::cluster
