// SPDX-License-Identifier: BSL-1.0
#include "side.hpp"
#include "taking.hpp"

using namespace soft_test;
namespace soft = verbena::soft;

namespace {

/// A shared receive queue of a domain.
struct shared {
  shared(side& of, ibv_pd* domain, std::uint32_t depth) : on{of} {
    ibv_srq_init_attr asked{};
    asked.attr = {depth, 1, 0};
    queue = on.calls.create_srq(domain, &asked);
    REQUIRE(queue != nullptr);
  }
  ~shared() { on.calls.destroy_srq(queue); }
  shared(const shared&) = delete;
  shared& operator=(const shared&) = delete;

  int receive(std::uint64_t id, ibv_sge* piece) const {
    ibv_recv_wr work{};
    work.wr_id = id;
    work.sg_list = piece;
    work.num_sge = piece == nullptr ? 0 : 1;
    ibv_recv_wr* refused = nullptr;
    return ibv_post_srq_recv(queue, &work, &refused);
  }
  end_options options() const {
    end_options with;
    with.shared_receives = queue;
    return with;
  }

  side& on;
  ibv_srq* queue = nullptr;
};

}  // namespace

TEST_CASE("soft: the memory of shared receives is of the shared queue's domain", "[soft]") {
  side on{fabric_name()};
  ibv_pd* const domain = on.calls.alloc_pd(on.native);
  REQUIRE(domain != nullptr);
  const auto receive_into = [&](ibv_mr* region, ibv_wc_status expected) {
    const shared receives{on, domain, 2};
    end one{on};
    end other{on, receives.options()};
    one.connect(other.pair->qp_num);
    other.connect(one.pair->qp_num);
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(on.memory) + 64, 64, region->lkey};
    for (const std::uint32_t length : {8U, 32U}) {  // carried and not
      REQUIRE(receives.receive(length, &piece) == 0);
      REQUIRE(one.send(length, {on.piece(0, length)}) == 0);
      CHECK(status_of(other.receives, length) == expected);
      if (expected != IBV_WC_SUCCESS) break;
    }
  };
  ibv_mr* const its = on.calls.reg_mr(domain, on.memory, side::bytes, IBV_ACCESS_LOCAL_WRITE);
  REQUIRE(its != nullptr);
  receive_into(its, IBV_WC_SUCCESS);
  receive_into(on.region, IBV_WC_LOC_PROT_ERR);
  CHECK(on.calls.dereg_mr(its) == 0);
  CHECK(on.calls.dealloc_pd(domain) == 0);
}
