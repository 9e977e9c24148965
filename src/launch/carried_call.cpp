#include "launch/carried_call.h"

#include "core/read_write.h"
#include "core/text.h"
#include "core/variables.h"
#include "launch/fields.h"

#include <array>
#include <climits>
#include <csignal>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace containerize::launch {

namespace {

constexpr std::string_view call_header = "containerize call 1";
constexpr const char* file_name = "containerize-call";
/// Skips the standard streams: those that are closed stay closed.
constexpr int first_free_descriptor = STDERR_FILENO + 1;

void put_list(std::string& bytes, const std::vector<std::string>& list) {
    put(bytes, std::to_string(list.size()));
    for (const auto& one : list)
        put(bytes, one);
}

/// Takes fields from the front, and records whether any was missing or malformed.
class Fields {
public:
    explicit Fields(std::string_view bytes) : rest_(bytes) {}

    std::string_view next() {
        const auto field = take_until(rest_, '\0');
        whole_ = whole_ && field;
        return field.value_or(std::string_view());
    }

    template<class Number>
    Number number() {
        const auto value = to_number<Number>(next());
        whole_ = whole_ && value;
        return value.value_or(0);
    }

    std::vector<std::string> list() {
        std::vector<std::string> all;
        for (auto count = number<std::size_t>(); whole_ && all.size() < count;)
            all.emplace_back(next());
        return all;
    }

    [[nodiscard]] std::string_view rest() const { return rest_; }
    [[nodiscard]] bool whole() const { return whole_; }

private:
    std::string_view rest_;
    bool whole_ = true;
};

bool is_ignored(int signal) {
    struct sigaction action {};
    return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

/// Enters the working directory by name or, if the name does not lead there, by descriptor.
void change_directory(const CarriedCall& call) {
    if (!call.directory.empty() && chdir(call.directory.c_str()) == 0) return;
    [[maybe_unused]] const int ignored = fchdir(call.directory_fd);
}

} // namespace

CarriedCall call_of_this_process() {
    CarriedCall call;
    std::array<char, PATH_MAX> name;
    if (getcwd(name.data(), name.size()) != nullptr && name[0] == '/') call.directory = name.data();
    for (int signal = 1; signal < NSIG && signal <= 64; ++signal)
        if (is_ignored(signal)) call.ignored_signals |= std::uint64_t{1} << static_cast<unsigned>(signal - 1);
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
        call.environment.emplace_back(*variable);
    const Fd directory(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    call.directory_fd = fcntl(directory.get(), F_DUPFD, first_free_descriptor);
    return call;
}

std::string to_bytes(const CarriedCall& call) {
    std::string bytes;
    put(bytes, call_header);
    put(bytes, call.program);
    put(bytes, call.target);
    put(bytes, call.through_prefix ? "1" : "0");
    put(bytes, call.directory);
    put(bytes, std::to_string(call.directory_fd));
    put(bytes, std::to_string(call.launcher_fd));
    put(bytes, std::to_string(call.ignored_signals));
    put_list(bytes, call.arguments);
    put_list(bytes, call.environment);
    bytes += to_bytes(call.plan);
    return bytes;
}

std::optional<CarriedCall> call_from_bytes(std::string_view bytes) {
    Fields fields(bytes);
    if (fields.next() != call_header) return std::nullopt;
    CarriedCall call;
    call.program = fields.next();
    call.target = fields.next();
    call.through_prefix = fields.number<int>() != 0;
    call.directory = fields.next();
    call.directory_fd = fields.number<int>();
    call.launcher_fd = fields.number<int>();
    call.ignored_signals = fields.number<std::uint64_t>();
    call.arguments = fields.list();
    call.environment = fields.list();
    auto plan = plan_from_bytes(fields.rest());
    if (!fields.whole() || !plan || call.arguments.empty()) return std::nullopt;
    call.plan = std::move(*plan);
    return call;
}

Result<Fd> pack(const CarriedCall& call) {
    const auto bytes = to_bytes(call);
    const Fd file(memfd_create(file_name, MFD_CLOEXEC));
    Fd passed;
    if (write_all(file.get(), bytes)) passed.reset(fcntl(file.get(), F_DUPFD, first_free_descriptor));
    if (!passed) return fail_errno("cannot save the environment for the program");
    return passed;
}

Result<std::optional<CarriedCall>> resume_call() {
    const char* text = value_of(call_variable);
    if (text == nullptr) return std::nullopt;
    const int descriptor = to_number<int>(text).value_or(-1);
    auto call = call_from_bytes(read_from_start(descriptor));
    if (!call)
        return fail({.what = "the container runtime did not pass on the program to run",
                     .where = std::string(call_variable.name()) + "=" + text,
                     .hint = "If you have set this variable yourself, unset it."});
    change_directory(*call);
    for (const int passed : {descriptor, call->directory_fd, call->launcher_fd})
        close(passed);
    for (int signal = 1; signal < NSIG && signal <= 64; ++signal)
        if ((call->ignored_signals >> static_cast<unsigned>(signal - 1) & 1U) != 0)
            std::signal(signal, SIG_IGN);
    return call;
}

} // namespace containerize::launch
