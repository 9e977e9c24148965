// Wheels, installed as in an environment.
#include "harness.h"
#include "input_file.h"
#include "wheel/archive.h"
#include "wheel/installation.h"
#include "wheel/scripts.h"

#include <set>
#include <string>

using namespace containerize;

namespace {

constexpr const char* name = "a-1-py3-none-any.whl";

void require_inside(std::string_view path) {
    fuzz::require(!path.empty() && !path.starts_with('/') && !path.starts_with("../") && path != ".." &&
                  path.find("/../") == path.npos && !path.ends_with("/.."));
}

/// The files; fewer if the archive is damaged, or has too much.
std::vector<wheel::PackagedFile> read_payload(const wheel::WheelArchive& archive) {
    constexpr std::size_t enough = 10U << 20U;
    std::size_t total = 0;
    std::vector<wheel::PackagedFile> files;
    std::set<wheel::Place> places;
    const auto read =
        archive.payload([&](const wheel::WheelEntry& entry, const wheel::ReadMore& more) -> Status {
            require_inside(entry.place.path);
            fuzz::require(places.insert(entry.place).second);
            std::string content;
            for (;;) {
                const auto bytes = more();
                if (!bytes) return fail(Error(bytes.error()));
                total += bytes->size();
                if (bytes->empty()) break;
                if (total > enough) return fail({.what = "enough"});
                content.append(reinterpret_cast<const char*>(bytes->data()), bytes->size());
            }
            fuzz::require(content.size() == entry.size);
            files.push_back({.place = entry.place});
            if (entry.place.scheme == wheel::Scheme::scripts && wheel::wants_interpreter(content))
                files.back().script = std::move(content);
            return {};
        });
    fuzz::require(total <= archive.unpacked_size());
    [[maybe_unused]] const bool whole = fuzz::good(read);
    return files;
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto file = OpenFile::open(fuzz::input_file(name, fuzz::text_of(data, size)));
    const auto archive = wheel::WheelArchive::open(*file, name);
    if (!fuzz::good(archive)) return 0;
    const auto plan = wheel::plan_installation(archive->dist_info(), read_payload(*archive),
                                               {.layout = wheel::venv_layout("3.11", "a"),
                                                .interpreter = "/data/my env/bin/python",
                                                .python = "3.11",
                                                .requested = true});
    fuzz::require(plan.has_value()); // .dist-info was checked
    for (const auto& one : plan->generated)
        require_inside(one.path);
    const auto& record = plan->generated.back();
    fuzz::require(record.path.ends_with("/RECORD") && wheel::parse_record(record.content).has_value());
    return 0;
}
