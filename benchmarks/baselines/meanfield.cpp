// The paper's mean field algorithm, written by hand for speed: one thread, AVX where the compiler finds it.
//
// The observed units are the last ones of the network, all others are hidden. Observed parents are absorbed into the
// bias of their child. Units with the same hidden parents form a block, a dense matrix of parents x children (a layer
// of a layered network is one block), and every inner loop runs along the children of a block. So neither the xi step
// nor the mu step needs a sum across the lanes of a register, except one per hidden unit, and no transposed copy.
//
// One sweep (letters of the paper; a = e^{-xi J}, b = a e^J, A and B the averages of eqs. (30) and (31)):
//   xi step, pass 1  f' and f'' of xi<z> + ln(A + B) at the present xi. The a of the last sweep hold: no exponential.
//   xi step, pass 2  one Newton step, then a, A and B at the new xi: one exponential per edge, no division. A unit
//                    whose f did not fall has its step halved until it does (f is convex, so it will).
//   mu step          eq. (24) one hidden unit at a time, one division per edge; A, B and <z> follow by multiplication.
//   bound            eq. (22) with the entropy of eq. (16), from A, B and <z> as they are: one logarithm per unit.
//
// `solve_plain` is the same algorithm laid out the obvious way: by child, loops along the parents, two exponentials per
// edge and sweep, a transposed copy for the mu step.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace {

constexpr int W = 8;  // doubles in a register of 512 bits
typedef double v8 __attribute__((vector_size(8 * W)));
constexpr double FLAT = 1e-12;      // a rise of f smaller than this is rounding
constexpr double SAFE_SUM = 600.0;  // a product of factors e^{|J|} may hold this much in its exponents

struct Aligned {  // a zeroed array on a cache line, padded to whole registers
    double* p = nullptr;
    size_t n = 0;
    Aligned() = default;
    explicit Aligned(size_t count) : n((count + W) / W * W) {
        p = static_cast<double*>(std::aligned_alloc(64, n * sizeof(double)));
        std::memset(p, 0, n * sizeof(double));
    }
    Aligned(const Aligned&) = delete;
    Aligned& operator=(Aligned&& other) noexcept {
        std::swap(p, other.p);
        std::swap(n, other.n);
        return *this;
    }
    ~Aligned() { std::free(p); }
    operator double*() const { return p; }
};

inline v8 load(const double* p) { return *reinterpret_cast<const v8*>(p); }
inline void store(double* p, v8 x) { *reinterpret_cast<v8*>(p) = x; }
inline v8 splat(double x) { return v8{x, x, x, x, x, x, x, x}; }
inline double total(v8 x) { return ((x[0] + x[4]) + (x[1] + x[5])) + ((x[2] + x[6]) + (x[3] + x[7])); }
#ifdef __AVX512F__
// e^x = 2^n e^r with |r| <= ln(2)/2: the series to r^12 leaves 2e-16. Inline, so that loops keep their registers.
inline v8 exp8(v8 x) {
    const v8 n = _mm512_roundscale_pd(x * 1.4426950408889634, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const v8 high = _mm512_fnmadd_pd(n, splat(0.693147180369123816490), x);  // ln(2) in two parts
    const v8 r = _mm512_fnmadd_pd(n, splat(1.9082149292705877e-10), high);
    v8 sum = splat(1.0 / 479001600.0);
    for (double c : {1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0,
                     1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0})
        sum = _mm512_fmadd_pd(sum, r, splat(c));
    return _mm512_scalef_pd(sum, n);
}
// 1/x from 14 bits by two Newton steps: a third of the time of a division.
inline v8 inverse8(v8 x) {
    v8 y = _mm512_rcp14_pd(x);
    y = _mm512_fmadd_pd(y, _mm512_fnmadd_pd(x, y, splat(1.0)), y);
    return _mm512_fmadd_pd(y, _mm512_fnmadd_pd(x, y, splat(1.0)), y);
}
#else
inline v8 exp8(v8 x) {
    v8 y;
#pragma omp simd
    for (int k = 0; k < W; k++) y[k] = std::exp(x[k]);
    return y;
}
inline v8 inverse8(v8 x) { return 1.0 / x; }
#endif
inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
inline double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
// Means stay off 0 and 1 by a rounding error, so that the entropy needs no special case.
inline double inside(double x) { return x < 1e-300 ? 1e-300 : (x > 1.0 - 1.2e-16 ? 1.0 - 1.2e-16 : x); }

struct Graph {  // the network as it comes: parents of unit i are parent[indptr[i]:indptr[i + 1]]
    int64_t n_units, n_hidden;
    const int64_t *indptr, *parent;
    double *weight, *bias;
};

double entropy(const double* mu, int64_t n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum -= mu[i] * std::log(mu[i]) + (1.0 - mu[i]) * std::log(1.0 - mu[i]);
    return sum;
}

struct Block {
    std::vector<int64_t> parent, unit;  // hidden parents, children
    std::vector<int64_t> cut;           // the product over parents is taken in groups [cut[g], cut[g + 1])
    size_t width, lane, edge;           // padded number of children; first place in lane and in edge arrays
};

class Solver {
  public:
    Graph g;
    std::vector<Block> blocks;
    std::vector<int64_t> lane_of, settled;  // of each unit: its lane or -1; units without hidden parents
    std::vector<std::vector<std::pair<int, int>>> children;  // of each hidden unit: (block, row)
    size_t n_lanes = 0, n_places = 0;
    bool has_observed_parents = false;
    double result = 0.0, constant = 0.0;  // the bound; its part that mu and xi do not change
    Aligned J, eJ, a, a_start;                                             // per edge
    Aligned h, xi, trial, A, B, scale, zm, own, f_old, mA, mB, vA, vB;     // per lane
    Aligned kA, kB, mu, shifted;                                          // per child; per unit

    explicit Solver(const Graph& graph) : g(graph) {
        lane_of.assign(g.n_units, -1);
        children.resize(g.n_hidden);
        for (int64_t i = 0; i < g.n_units; i++) {
            std::vector<int64_t> hidden;
            for (int64_t e = g.indptr[i]; e < g.indptr[i + 1]; e++) {
                if (g.parent[e] < g.n_hidden) hidden.push_back(g.parent[e]);
                else has_observed_parents = true;
            }
            if (hidden.empty()) {
                settled.push_back(i);
                continue;
            }
            if (blocks.empty() || hidden != blocks.back().parent) {
                blocks.emplace_back();
                blocks.back().parent = hidden;
            }
            blocks.back().unit.push_back(i);
        }
        size_t widest = 0;
        for (size_t k = 0; k < blocks.size(); k++) {
            Block& block = blocks[k];
            block.width = (block.unit.size() + W - 1) / W * W;
            block.lane = n_lanes;
            block.edge = n_places;
            for (size_t c = 0; c < block.unit.size(); c++) lane_of[block.unit[c]] = n_lanes + c;
            for (size_t r = 0; r < block.parent.size(); r++) children[block.parent[r]].emplace_back(k, r);
            n_lanes += block.width;
            n_places += block.width * block.parent.size();
            widest = std::max(widest, block.width);
        }
        for (Aligned* x : {&J, &eJ, &a, &a_start}) *x = Aligned(n_places);
        for (Aligned* x : {&h, &xi, &trial, &A, &B, &scale, &zm, &own, &f_old, &mA, &mB, &vA, &vB})
            *x = Aligned(n_lanes);
        for (Aligned* x : {&kA, &kB}) *x = Aligned(widest);
        for (Aligned* x : {&mu, &shifted}) *x = Aligned(g.n_units);
        for_each_edge([&](size_t place, int64_t e) { J[place] = g.weight[e]; });
        exponentials();
    }

    template <class F> void for_each_edge(F visit) {  // place in a block, place among the edges
        for (Block& block : blocks)
            for (size_t c = 0; c < block.unit.size(); c++) {
                size_t r = 0;
                for (int64_t e = g.indptr[block.unit[c]]; e < g.indptr[block.unit[c] + 1]; e++)
                    if (g.parent[e] < g.n_hidden) visit(block.edge + r++ * block.width + c, e);
            }
    }

    void exponentials() {  // what depends on the weights alone
#pragma omp simd
        for (size_t e = 0; e < n_places; e++) {
            a_start[e] = std::exp(-0.5 * J[e]);
            eJ[e] = 1.0 / (a_start[e] * a_start[e]);
        }
        for (Block& block : blocks) {
            block.cut.assign(1, 0);
            double sum = 0.0;
            for (size_t r = 0; r < block.parent.size(); r++) {
                double largest = 0.0;
                for (size_t c = 0; c < block.width; c++)
                    largest = std::max(largest, std::fabs(J[block.edge + r * block.width + c]));
                if (sum + largest > SAFE_SUM && r > size_t(block.cut.back())) {
                    block.cut.push_back(r);
                    sum = 0.0;
                }
                sum += largest;
            }
            block.cut.push_back(block.parent.size());
        }
    }

    void start(const uint8_t* x) {  // mu = xi = 1/2
        for (int64_t i = 0; i < g.n_units; i++) {
            mu[i] = i < g.n_hidden ? 0.5 : double(x[i - g.n_hidden]);
            shifted[i] = g.bias[i];
        }
        if (has_observed_parents)
            for (int64_t i = g.n_hidden; i < g.n_units; i++)
                for (int64_t e = g.indptr[i]; e < g.indptr[i + 1]; e++)
                    if (g.parent[e] >= g.n_hidden) shifted[i] += g.weight[e] * mu[g.parent[e]];
        constant = 0.0;
        for (int64_t i : settled) constant -= softplus(shifted[i]);
        for (size_t k = 0; k < n_lanes; k++) trial[k] = 0.5;
        for (Block& block : blocks) {
            for (size_t c = 0; c < block.unit.size(); c++) {
                h[block.lane + c] = shifted[block.unit[c]];
                own[block.lane + c] = mu[block.unit[c]];
            }
            for (size_t c = 0; c < block.width; c += W) {
                v8 z = load(h + block.lane + c);
                const double* w = J + block.edge + c;
                for (size_t r = 0; r < block.parent.size(); r++) z += load(w + r * block.width) * mu[block.parent[r]];
                store(zm + block.lane + c, z);
            }
        }
        std::memcpy(a, a_start, n_places * sizeof(double));
        for (Block& block : blocks) products<false>(block);
        std::memcpy(xi, trial, n_lanes * sizeof(double));
    }

    // A and B, eqs. (30) and (31), both divided by e^scale; with `fresh`, first a = e^{-xi J} at the trial xi.
    template <bool fresh> void products(const Block& block) {
        const size_t width = block.width, lane = block.lane;
        const bool one_group = block.cut.size() == 2;
        double *lA = A + lane, *lB = B + lane, *s = scale + lane;
        const double *x = trial + lane, *hh = h + lane;
        if (!one_group) std::memset(lA, 0, width * sizeof(double)), std::memset(lB, 0, width * sizeof(double));
        for (size_t group = 0; group + 1 < block.cut.size(); group++) {
            const size_t from = block.cut[group], to = block.cut[group + 1];
            for (size_t c = 0; c < width; c += W) {
                v8 pA = splat(1.0), pB = splat(1.0);
                const v8 minus_xi = -load(x + c);
                const double *ee = eJ + block.edge + c, *ww = J + block.edge + c;
                double* aa = a + block.edge + c;
                for (size_t r = from; r < to; r++) {
                    const double m = mu[block.parent[r]], q = 1.0 - m;
                    const v8 av = fresh ? exp8(minus_xi * load(ww + r * width)) : load(aa + r * width);
                    if (fresh) store(aa + r * width, av);
                    const v8 mb = av * load(ee + r * width) * m;
                    pA *= q + m * av;
                    pB *= q + mb;
                }
                store(lA + c, one_group ? pA : load(lA + c));
                store(lB + c, one_group ? pB : load(lB + c));
                if (!one_group)
                    for (int k = 0; k < W; k++) lA[c + k] += std::log(pA[k]), lB[c + k] += std::log(pB[k]);
            }
        }
        if (one_group) {
#pragma omp simd
            for (size_t c = 0; c < width; c++) {
                lA[c] *= std::exp(-x[c] * hh[c]);
                lB[c] *= std::exp((1.0 - x[c]) * hh[c]);
                s[c] = 0.0;
            }
            return;
        }
        for (size_t c = 0; c < width; c++) {
            const double logA = lA[c] - x[c] * hh[c], logB = lB[c] + (1.0 - x[c]) * hh[c];
            s[c] = std::max(logA, logB);
            lA[c] = std::exp(logA - s[c]);
            lB[c] = std::exp(logB - s[c]);
        }
    }

    void moments(const Block& block) {  // means and variances of z under the two tilted distributions
        const size_t width = block.width;
        for (size_t c = 0; c < width; c += W) {
            v8 sA = load(h + block.lane + c), sB = sA, qA = splat(0.0), qB = splat(0.0);
            const double *aa = a + block.edge + c, *ee = eJ + block.edge + c, *ww = J + block.edge + c;
            for (size_t r = 0; r < block.parent.size(); r++) {
                const double m = mu[block.parent[r]], q = 1.0 - m;
                const v8 av = load(aa + r * width), w = load(ww + r * width), bv = av * load(ee + r * width);
                const v8 fa = q + m * av, fb = q + m * bv, common = (m * w) * inverse8(fa * fb);
                const v8 wA = av * fb * common, wB = bv * fa * common;  // J alpha, J beta
                sA += wA;
                sB += wB;
                qA += wA * (w - wA);
                qB += wB * (w - wB);
            }
            store(mA + block.lane + c, sA);
            store(mB + block.lane + c, sB);
            store(vA + block.lane + c, qA);
            store(vB + block.lane + c, qB);
        }
    }

    void xi_step() {
        for (Block& block : blocks) moments(block);
#pragma omp simd
        for (size_t k = 0; k < n_lanes; k++) {  // safeguarded Newton: never onto 0 or 1
            const double sum = A[k] + B[k], phi = B[k] / sum, gap = mB[k] - mA[k];
            const double slope = zm[k] - (1.0 - phi) * mA[k] - phi * mB[k];
            const double curve = (1.0 - phi) * vA[k] + phi * vB[k] + phi * (1.0 - phi) * gap * gap;
            double x = xi[k] - slope / (curve + 1e-300);
            x = x <= 0.0 ? 0.5 * xi[k] : x;
            x = x >= 1.0 ? 0.5 + 0.5 * xi[k] : x;
            trial[k] = x;
            f_old[k] = xi[k] * zm[k] + scale[k] + std::log(sum);
        }
        for (Block& block : blocks) products<true>(block);
        int rose = 0;
#pragma omp simd reduction(+ : rose)
        for (size_t k = 0; k < n_lanes; k++)
            rose += trial[k] * zm[k] + scale[k] + std::log(A[k] + B[k]) > f_old[k] + FLAT;
        if (rose) shorten();
        std::memcpy(xi, trial, n_lanes * sizeof(double));
    }

    void shorten() {  // halve the steps that went too far; rare, so whole blocks at a time
        for (Block& block : blocks)
            for (int halvings = 0; halvings < 40; halvings++) {
                bool changed = false;
                for (size_t k = block.lane; k < block.lane + block.width; k++)
                    if (trial[k] * zm[k] + scale[k] + std::log(A[k] + B[k]) > f_old[k] + FLAT) {
                        trial[k] = halvings < 39 ? 0.5 * (trial[k] + xi[k]) : xi[k];
                        changed = true;
                    }
                if (!changed) break;
                products<true>(block);
            }
    }

    void mu_step() {
        for (int64_t j = 0; j < g.n_hidden; j++) {
            const double m = mu[j], q = 1.0 - m;
            double input = lane_of[j] < 0 ? shifted[j] : zm[lane_of[j]];
            const auto& places = children[j];
            for (const auto& [k, row] : places) input += influence(blocks[k], row, m, q);
            const double fresh = inside(sigmoid(input)), delta = fresh - m;
            mu[j] = fresh;
            if (lane_of[j] >= 0) own[lane_of[j]] = fresh;
            for (size_t p = 0; p < places.size(); p++) {
                const Block& block = blocks[places[p].first];
                if (places.size() > 1) influence(block, places[p].second, m, q);  // kA and kB of this block again
                follow(block, places[p].second, delta);
            }
        }
    }

    // Sum over the children in a block of J(mu - xi) + K, eqs. (24) and (33); leaves kA and kB.
    double influence(const Block& block, size_t row, double m, double q) {
        const size_t at = block.edge + row * block.width;
        v8 sum = splat(0.0);
        for (size_t c = 0; c < block.width; c += W) {
            const size_t k = block.lane + c;
            const v8 av = load(a + at + c), bv = av * load(eJ + at + c), w = load(J + at + c);
            const v8 fa = q + m * av, fb = q + m * bv, AA = load(A + k), BB = load(B + k), both = AA + BB;
            const v8 ta = (1.0 - av) * fb, tb = (1.0 - bv) * fa, inverse = inverse8(fa * fb * both);
            sum += w * (load(own + k) - load(xi + k)) + (AA * ta + BB * tb) * inverse;
            store(kA + c, ta * both * inverse);
            store(kB + c, tb * both * inverse);
        }
        return total(sum);
    }

    void follow(const Block& block, size_t row, double delta) {  // A, B and <z> after mu moved by delta
        const double* w = J + block.edge + row * block.width;
        for (size_t c = 0; c < block.width; c += W) {
            const size_t k = block.lane + c;
            store(A + k, load(A + k) * (1.0 - delta * load(kA + c)));
            store(B + k, load(B + k) * (1.0 - delta * load(kB + c)));
            store(zm + k, load(zm + k) + delta * load(w + c));
        }
    }

    double bound() {  // eq. (22) with the sign of eq. (16)
        double sum = constant + entropy(mu, g.n_hidden);
        for (int64_t i : settled) sum += mu[i] * shifted[i];
        for (const Block& block : blocks) {
            const size_t from = block.lane, to = block.lane + block.unit.size();
#pragma omp simd reduction(+ : sum)
            for (size_t k = from; k < to; k++) sum += (own[k] - xi[k]) * zm[k] - scale[k] - std::log(A[k] + B[k]);
        }
        return sum;
    }

    int64_t solve(const uint8_t* x, double tol, int64_t max_sweeps) {
        start(x);
        double before = -std::numeric_limits<double>::max();
        int64_t sweeps = 0;
        while (sweeps < max_sweeps) {
            xi_step();
            mu_step();
            sweeps++;
            result = bound();
            if (result - before < tol) break;
            before = result;
        }
        return sweeps;
    }

    void climb(double rate) {  // eqs. (34) and (35) at the present mu and xi
        for (Block& block : blocks) {
            for (size_t r = 0; r < block.parent.size(); r++) {
                const double m = mu[block.parent[r]], q = 1.0 - m;
                double* w = J + block.edge + r * block.width;
                const double *aa = a + block.edge + r * block.width, *ee = eJ + block.edge + r * block.width;
                const double *AA = A + block.lane, *BB = B + block.lane, *x = xi + block.lane, *o = own + block.lane;
#pragma omp simd
                for (size_t c = 0; c < block.unit.size(); c++) {
                    const double phi = BB[c] / (AA[c] + BB[c]), b = aa[c] * ee[c];
                    w[c] += rate * m * ((o[c] - x[c]) + (1.0 - phi) * x[c] * aa[c] / (q + m * aa[c])
                                        - phi * (1.0 - x[c]) * b / (q + m * b));
                }
            }
        }
        for (int64_t i = 0; i < g.n_units; i++) {
            const int64_t k = lane_of[i];
            const double slope = mu[i] - (k < 0 ? sigmoid(shifted[i]) : B[k] / (A[k] + B[k]));
            g.bias[i] += rate * slope;
            if (has_observed_parents)  // mu_j is 0 or 1, and eq. (34) is slope times mu_j
                for (int64_t e = g.indptr[i]; e < g.indptr[i + 1]; e++)
                    if (g.parent[e] >= g.n_hidden) g.weight[e] += rate * slope * mu[g.parent[e]];
        }
        exponentials();
    }
};

class PlainSolver {  // by child, along parents; every exponential where it is needed
  public:
    Graph g;
    std::vector<int64_t> ptr, count, par, cptr, child;  // hidden parents by child, padded; children by parent
    std::vector<size_t> place_of;
    Aligned J, eJ, J_t, eJ_t, a_t, m_par, a_par;  // by child; by parent; of one child
    Aligned mu, xi, trial, f_old, A, B, zm, mA, mB, vA, vB, shifted, e_bias, kA, kB, mc, xc, Ac, Bc;  // per unit
    double result = 0.0;

    explicit PlainSolver(const Graph& graph) : g(graph) {
        ptr.assign(1, 0);
        cptr.assign(g.n_hidden + 1, 0);
        std::vector<int64_t> edge;
        size_t widest = 1, n_edges = 0;
        for (int64_t i = 0; i < g.n_units; i++) {
            const size_t before = n_edges;
            for (int64_t e = g.indptr[i]; e < g.indptr[i + 1]; e++)
                if (g.parent[e] < g.n_hidden) {
                    par.push_back(g.parent[e]), edge.push_back(e), n_edges++;
                    cptr[g.parent[e] + 1]++;
                }
            while (par.size() % W) par.push_back(0), edge.push_back(-1);  // weight 0: the factor is 1
            ptr.push_back(par.size());
            count.push_back(n_edges - before);
            widest = std::max(widest, n_edges - before);
        }
        for (int64_t j = 0; j < g.n_hidden; j++) cptr[j + 1] += cptr[j];
        child.resize(n_edges);
        J = Aligned(par.size()), eJ = Aligned(par.size());
        for (Aligned* x : {&m_par, &a_par}) *x = Aligned(widest + W);
        for (Aligned* x : {&J_t, &eJ_t, &a_t}) *x = Aligned(n_edges);
        place_of.assign(par.size(), 0);
        std::vector<int64_t> next(cptr.begin(), cptr.end());
        for (int64_t i = 0; i < g.n_units; i++)
            for (int64_t e = ptr[i]; e < ptr[i + 1]; e++) {
                eJ[e] = 1.0;
                if (edge[e] < 0) continue;
                const size_t t = next[par[e]]++;
                J[e] = J_t[t] = g.weight[edge[e]];
                eJ[e] = eJ_t[t] = std::exp(J[e]);
                child[t] = i, place_of[e] = t;
            }
        for (Aligned* x : {&mu, &xi, &trial, &f_old, &A, &B, &zm, &mA, &mB, &vA, &vB, &shifted, &e_bias, &kA, &kB,
                           &mc, &xc, &Ac, &Bc})
            *x = Aligned(g.n_units + W);
    }

    // Everything about xi of unit i in one pass along its parents: A and B less the bias, the tilted moments, and a.
    void pass(int64_t i) {
        const int64_t from = ptr[i], n = (ptr[i + 1] - from) / W * W;
        const double x = trial[i], *w = J + from, *e = eJ + from, *m = means_of_parents(i);
        double* out = a_par;
        double pA = 1, pB = 1, sA = 0, sB = 0, qA = 0, qB = 0;
#pragma omp simd reduction(* : pA, pB) reduction(+ : sA, sB, qA, qB) aligned(w, e, out : 64)
        for (int64_t k = 0; k < n; k++) {
            const double a = std::exp(-x * w[k]), b = a * e[k], fa = 1.0 - m[k] + m[k] * a, fb = 1.0 - m[k] + m[k] * b;
            const double common = m[k] * w[k] / (fa * fb), wA = a * fb * common, wB = b * fa * common;
            out[k] = a;
            pA *= fa, pB *= fb, sA += wA, sB += wB, qA += wA * (w[k] - wA), qB += wB * (w[k] - wB);
        }
        A[i] = pA, B[i] = pB, mA[i] = sA, mB[i] = sB, vA[i] = qA, vB[i] = qB;
    }

    const double* means_of_parents(int64_t i) {  // in place if the parents are neighbours; what pads them has weight 0
        const int64_t from = ptr[i], n = ptr[i + 1] - from;
        if (n == 0 || par[from] + count[i] == par[from + count[i] - 1] + 1) return mu + (n ? par[from] : 0);
        for (int64_t k = 0; k < n; k++) m_par[k] = mu[par[from + k]];
        return m_par;
    }

    void transpose(int64_t i) {
        for (int64_t k = 0; k < count[i]; k++) a_t[place_of[ptr[i] + k]] = a_par[k];
    }

    void biases() {  // complete A and B
#pragma omp simd
        for (int64_t i = 0; i < g.n_units; i++) {
            const double t = std::exp(-trial[i] * shifted[i]);
            A[i] *= t, B[i] *= t * e_bias[i];
        }
    }

    void xi_step() {
        std::memcpy(trial, xi, g.n_units * sizeof(double));
        for (int64_t i = 0; i < g.n_units; i++) pass(i);
        biases();
#pragma omp simd
        for (int64_t i = 0; i < g.n_units; i++) {
            const double sum = A[i] + B[i], phi = B[i] / sum, gap = mB[i] - mA[i];
            const double slope = zm[i] - shifted[i] - (1.0 - phi) * mA[i] - phi * mB[i];
            const double curve = (1.0 - phi) * vA[i] + phi * vB[i] + phi * (1.0 - phi) * gap * gap;
            double x = xi[i] - slope / (curve + 1e-300);
            x = x <= 0.0 ? 0.5 * xi[i] : x;
            x = x >= 1.0 ? 0.5 + 0.5 * xi[i] : x;
            trial[i] = x;
            f_old[i] = xi[i] * zm[i] + std::log(sum);
        }
        for (int64_t i = 0; i < g.n_units; i++) pass(i), transpose(i);
        biases();
        int rose = 0;
#pragma omp simd reduction(+ : rose)
        for (int64_t i = 0; i < g.n_units; i++) rose += trial[i] * zm[i] + std::log(A[i] + B[i]) > f_old[i] + FLAT;
        for (int halvings = 0; rose && halvings < 40; halvings++) {
            rose = 0;
            for (int64_t i = 0; i < g.n_units; i++) {
                if (!(trial[i] * zm[i] + std::log(A[i] + B[i]) > f_old[i] + FLAT)) continue;
                trial[i] = halvings < 39 ? 0.5 * (trial[i] + xi[i]) : xi[i];
                pass(i), transpose(i), rose++;
                A[i] *= std::exp(-trial[i] * shifted[i]), B[i] *= std::exp((1.0 - trial[i]) * shifted[i]);
            }
        }
        std::memcpy(xi, trial, g.n_units * sizeof(double));
    }

    void mu_step(int64_t j) {
        const int64_t from = cptr[j], n = cptr[j + 1] - from;
        const double *w = J_t + from, *a = a_t + from, *e = eJ_t + from, m = mu[j], q = 1.0 - m;
        const int64_t* to = child.data() + from;
        const bool neighbours = n > 0 && to[0] + n == to[n - 1] + 1;
        double input = ptr[j + 1] > ptr[j] ? zm[j] : shifted[j];
        if (neighbours) input += influence(n, w, a, e, m, q, mu + to[0], xi + to[0], A + to[0], B + to[0]);
        else {
            for (int64_t k = 0; k < n; k++) mc[k] = mu[to[k]], xc[k] = xi[to[k]], Ac[k] = A[to[k]], Bc[k] = B[to[k]];
            input += influence(n, w, a, e, m, q, mc, xc, Ac, Bc);
        }
        mu[j] = inside(sigmoid(input));
        const double delta = mu[j] - m;
        if (neighbours) {
            double *AA = A + to[0], *BB = B + to[0], *z = zm + to[0];
            const double *k_A = kA, *k_B = kB;
#pragma omp simd
            for (int64_t k = 0; k < n; k++)
                AA[k] *= 1.0 - delta * k_A[k], BB[k] *= 1.0 - delta * k_B[k], z[k] += delta * w[k];
            return;
        }
        for (int64_t k = 0; k < n; k++)
            A[to[k]] *= 1.0 - delta * kA[k], B[to[k]] *= 1.0 - delta * kB[k], zm[to[k]] += delta * w[k];
    }

    double influence(int64_t n, const double* w, const double* a, const double* e, double m, double q,
                     const double* own, const double* x, const double* AA, const double* BB) {
        double sum = 0.0, *k_A = kA, *k_B = kB;
#pragma omp simd reduction(+ : sum)
        for (int64_t k = 0; k < n; k++) {
            const double b = a[k] * e[k], fa = q + m * a[k], fb = q + m * b, both = AA[k] + BB[k];
            const double ta = (1.0 - a[k]) * fb, tb = (1.0 - b) * fa, inverse = 1.0 / (fa * fb * both);
            sum += w[k] * (own[k] - x[k]) + (AA[k] * ta + BB[k] * tb) * inverse;
            k_A[k] = ta * both * inverse, k_B[k] = tb * both * inverse;
        }
        return sum;
    }

    double bound() {  // a unit without hidden parents has A = e^{-xi h}, B = e^{(1-xi)h}: its term is exact for any xi
        double sum = entropy(mu, g.n_hidden);
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < g.n_units; i++) sum += (mu[i] - xi[i]) * zm[i] - std::log(A[i] + B[i]);
        return sum;
    }

    int64_t solve(const uint8_t* row, double tol, int64_t max_sweeps) {
        for (int64_t i = 0; i < g.n_units; i++) {
            mu[i] = i < g.n_hidden ? 0.5 : double(row[i - g.n_hidden]);
            xi[i] = 0.5, shifted[i] = g.bias[i];
            if (g.indptr[i + 1] - g.indptr[i] > count[i])  // it has observed parents
                for (int64_t e = g.indptr[i]; e < g.indptr[i + 1]; e++)
                    if (g.parent[e] >= g.n_hidden) shifted[i] += g.weight[e] * mu[g.parent[e]];
            zm[i] = shifted[i];
            for (int64_t e = ptr[i]; e < ptr[i + 1]; e++) zm[i] += J[e] * 0.5;
        }
#pragma omp simd
        for (int64_t i = 0; i < g.n_units; i++) e_bias[i] = std::exp(shifted[i]);
        double before = -std::numeric_limits<double>::max();
        int64_t sweeps = 0;
        while (sweeps < max_sweeps) {
            xi_step();
            for (int64_t j = 0; j < g.n_hidden; j++) mu_step(j);
            sweeps++;
            result = bound();
            if (result - before < tol) break;
            before = result;
        }
        return sweeps;
    }
};

template <class S> void solve_rows(S& solver, int64_t n, const uint8_t* X, double tol, int64_t max_sweeps,
                                   double* bound, double* means, int64_t* sweeps) {
    const Graph& g = solver.g;
    for (int64_t r = 0; r < n; r++) {
        sweeps[r] = solver.solve(X + r * (g.n_units - g.n_hidden), tol, max_sweeps);
        bound[r] = solver.result;
        std::memcpy(means + r * g.n_hidden, solver.mu, g.n_hidden * sizeof(double));
    }
}

}  // namespace

extern "C" {

void solve(int64_t n_units, int64_t n_hidden, const int64_t* indptr, const int64_t* parent, double* weight,
           double* bias, int64_t n, const uint8_t* X, double tol, int64_t max_sweeps, double* bound, double* means,
           int64_t* sweeps) {
    Solver solver(Graph{n_units, n_hidden, indptr, parent, weight, bias});
    solve_rows(solver, n, X, tol, max_sweeps, bound, means, sweeps);
}

void solve_plain(int64_t n_units, int64_t n_hidden, const int64_t* indptr, const int64_t* parent, double* weight,
                 double* bias, int64_t n, const uint8_t* X, double tol, int64_t max_sweeps, double* bound,
                 double* means, int64_t* sweeps) {
    PlainSolver solver(Graph{n_units, n_hidden, indptr, parent, weight, bias});
    solve_rows(solver, n, X, tol, max_sweeps, bound, means, sweeps);
}

// Online gradient ascent on the bound; weight and bias are changed in place. Patterns in the order given, every epoch.
void train(int64_t n_units, int64_t n_hidden, const int64_t* indptr, const int64_t* parent, double* weight,
           double* bias, int64_t n, const uint8_t* X, double tol, int64_t max_sweeps, int64_t epochs, double rate) {
    Solver solver(Graph{n_units, n_hidden, indptr, parent, weight, bias});
    for (int64_t epoch = 0; epoch < epochs; epoch++)
        for (int64_t r = 0; r < n; r++) {
            solver.solve(X + r * (n_units - n_hidden), tol, max_sweeps);
            solver.climb(rate);
        }
    solver.for_each_edge([&](size_t place, int64_t e) { weight[e] = solver.J[place]; });
}
}
