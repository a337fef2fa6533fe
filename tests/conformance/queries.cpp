// SPDX-License-Identifier: BSL-1.0
#include <set>

#include "fixture/end.hpp"

using namespace raw;

TEST_CASE("queries: the device", "[query]") {
  VERBENA_BED_OR_SKIP(on);
  CHECK(std::string{on.context->device->name} == on.name);
  CHECK(on.device.phys_port_cnt >= 1);
  CHECK(on.device.max_qp >= 16);
  CHECK(on.device.max_qp_wr >= 64);
  CHECK(on.device.max_sge >= 2);
  CHECK(on.device.max_cq >= 16);
  CHECK(on.device.max_cqe >= 256);
  CHECK(on.device.max_mr >= 16);
  CHECK(on.device.max_pd >= 2);
  CHECK(on.device.max_mr_size >= 1U << 30);
  CHECK(on.context->num_comp_vectors >= 1);
  if (on.iwarp) {
    CHECK(on.device.atomic_cap == IBV_ATOMIC_NONE);
  } else {
    CHECK(on.device.atomic_cap != IBV_ATOMIC_NONE);
    CHECK(on.device.max_qp_rd_atom >= 1);
    CHECK(on.device.max_qp_init_rd_atom >= 1);
  }
}

TEST_CASE("queries: the port", "[query]") {
  VERBENA_BED_OR_SKIP(on);
  CHECK(on.port.state == IBV_PORT_ACTIVE);
  CHECK(on.port.link_layer == IBV_LINK_LAYER_ETHERNET);
  CHECK(on.port.active_mtu >= IBV_MTU_256);
  CHECK(on.port.active_mtu <= on.port.max_mtu);
  CHECK(on.port.max_mtu <= IBV_MTU_4096);
  if (!on.iwarp) CHECK(on.port.max_msg_sz >= 1U << 20);
  CHECK(on.port.gid_tbl_len >= 1);
  ibv_port_attr port{};
  for (const std::uint8_t wrong :
       {std::uint8_t{0}, std::uint8_t(on.device.phys_port_cnt + 1), std::uint8_t{255}}) {
    INFO("port " << int{wrong});
    CHECK(number(on.calls.query_port(on.context, wrong, &port)) == EINVAL);
  }
}

TEST_CASE("FC-32 queries: the table of GIDs", "[query]") {
  VERBENA_BED_OR_SKIP(on);
  int filled = 0;
  for (int index = 0; index < on.port.gid_tbl_len; ++index) {
    ibv_gid_entry entry{};
    if (on.calls.query_gid(on.context, 1, std::uint32_t(index), &entry) != 0) continue;
    CHECK(entry.gid_index == std::uint32_t(index));
    CHECK(entry.port_num == 1);
    CHECK(entry.gid_type <= IBV_GID_TYPE_ROCE_V2);
    if ((entry.gid.global.subnet_prefix | entry.gid.global.interface_id) != 0) ++filled;
  }
  CHECK(filled >= 1);
  ibv_gid_entry entry{};
  CHECK(on.calls.query_gid(on.context, 1, std::uint32_t(on.port.gid_tbl_len) + 1000, &entry) != 0);
  CHECK(on.calls.query_gid(on.context, 2, 0, &entry) != 0);
}

TEST_CASE("FC-05 capacities: granted at least, refused beyond the device", "[query]") {
  VERBENA_BED_OR_SKIP(on);
  const auto make = [&](ibv_qp_cap cap) {
    queue both{on};
    ibv_qp_init_attr asked{};
    asked.qp_type = IBV_QPT_RC;
    asked.send_cq = asked.recv_cq = both.native();
    asked.cap = cap;
    errno = 0;
    ibv_qp* const made = on.calls.create_qp(on.domain, &asked);
    const int failed = errno;
    if (made == nullptr) return failed == 0 ? ENOMEM : failed;
    CHECK(asked.cap.max_send_wr >= cap.max_send_wr);
    CHECK(asked.cap.max_recv_wr >= cap.max_recv_wr);
    CHECK(asked.cap.max_send_sge >= cap.max_send_sge);
    CHECK(asked.cap.max_recv_sge >= cap.max_recv_sge);
    CHECK(asked.cap.max_inline_data >= cap.max_inline_data);
    CHECK(on.calls.destroy_qp(made) == 0);
    return 0;
  };
  const auto most = static_cast<std::uint32_t>(on.device.max_qp_wr);
  const auto pieces = static_cast<std::uint32_t>(on.device.max_sge);
  CHECK(make({1, 1, 1, 1, 0}) == 0);
  CHECK(make({13, 7, 3, 2, 17}) == 0);
  CHECK(make({64, 64, 2, 2, 64}) == 0);
  // EINVAL; siw says EINVAL or ENOMEM.
  for (const ibv_qp_cap& each :
       {ibv_qp_cap{most + 1, 1, 1, 1, 0}, ibv_qp_cap{1, most + 1, 1, 1, 0},
        ibv_qp_cap{1, 1, pieces + 1, 1, 0}, ibv_qp_cap{1, 1, 1, pieces + 1, 0}}) {
    INFO(each.max_send_wr << ", " << each.max_recv_wr << ", " << each.max_send_sge << ", "
                          << each.max_recv_sge);
    const int said = make(each);
    CHECK((said == EINVAL || said == ENOMEM));
  }
  const int said = make({1, 1, 1, 1, 1U << 20});
  CHECK((said == EINVAL || said == ENOMEM || (on.iwarp && said == 0)));
}

TEST_CASE("queries: queue pair numbers are distinct and 24 bits wide", "[query]") {
  VERBENA_BED_OR_SKIP(on);
  end first{on};
  end second{on};
  CHECK(first.number() != second.number());
  for (const end* each : {&first, &second}) {
    CHECK(each->number() > (on.iwarp ? 0 : 1));  // 0 and 1 are the management queue pairs
    CHECK(each->number() <= 0xff'ffffU);
  }
}

TEST_CASE("FC-41 transports that the device does not have are refused", "[query]") {
  VERBENA_BED_OR_SKIP(on);
  queue both{on};
  for (const ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_DRIVER}) {
    INFO("type " << type);
    ibv_qp_init_attr asked{};
    asked.qp_type = type;
    asked.send_cq = asked.recv_cq = both.native();
    asked.cap = {1, 1, 1, 1, 0};
    errno = 0;
    ibv_qp* const made = on.calls.create_qp(on.domain, &asked);
    const int failed = errno;
    const bool has = !on.iwarp && (type == IBV_QPT_UC || type == IBV_QPT_UD);
    CHECK((made != nullptr) == has);
    if (!has) CHECK((failed == EOPNOTSUPP || failed == EINVAL || failed == ENOSYS));
    if (made != nullptr) CHECK(on.calls.destroy_qp(made) == 0);
  }
}
