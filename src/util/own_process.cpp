#include "util/own_process.h"

#include "core/fd.h"
#include "core/interrupt.h"
#include "core/read_write.h"
#include "util/child.h"
#include "util/json.h"
#include "util/redact.h"

#include <sys/mman.h>

#include <nlohmann/json.hpp>

namespace containerize {

namespace {

using nlohmann::json;

/// Without secrets: only the copy may know them.
std::string to_text(const Error& error) {
    const json members = {{"what", redacted(error.what)},
                          {"why", redacted(error.why)},
                          {"where", redacted(error.where)},
                          {"hint", redacted(error.hint)},
                          {"is_input", error.fault == Fault::input}};
    return members.dump(-1, ' ', false, json::error_handler_t::replace);
}

Error error_from(const std::string& text, const std::string& ended) {
    const auto members = parse_json_quietly(text);
    if (!members.is_object()) return {.what = "a process of this command ended", .why = ended};
    return {.what = text_of(members, "what"),
            .why = text_of(members, "why"),
            .where = text_of(members, "where"),
            .hint = text_of(members, "hint"),
            .fault = members.value("is_input", false) ? Fault::input : Fault::failure};
}

/// Waits for the copy, which gets the terminal's signals itself, and others from us. Returns its exit code.
int follow(Child& child) {
    child.wait_for_end_or(interrupt_fd());
    if (!child.ended() && interrupted()) child.signal_group(interrupt_signal());
    return child.wait();
}

} // namespace

Status in_own_process(const std::function<Status()>& work) {
    const Fd answer(memfd_create("error", MFD_CLOEXEC));
    if (!answer) return fail_errno("cannot keep a message in memory");
    auto child = TRY(Child::start_copy([&] {
        const auto done = work();
        if (done) return 0;
        write_all_at(answer.get(), to_text(done.error()), 0);
        return 1;
    }));
    const int code = follow(child);
    if (interrupted()) return fail_interrupted();
    if (code == 0) return {};
    const auto ended =
        code > 128 ? "by signal " + std::to_string(code - 128) : "with status " + std::to_string(code);
    return fail(error_from(read_from_start(answer.get()), ended));
}

} // namespace containerize
