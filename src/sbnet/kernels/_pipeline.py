"""What is done to a kernel on its way to machine code: no more than kernels need.

numba's own way serves any function. It optimises each and turns it into machine code, even those that become part of
others and are optimised there once more; it finds out what ``a + b`` means again at every line; it looks for closures
and array expressions, of which kernels have none. Here, a kernel that only kernels call is a *part*: it is typed and
kept, and the rest is done where it is linked. With that, the first answer takes little more than half as long.
"""

from __future__ import annotations

import operator
from functools import cache
from typing import Any, ClassVar

import numba
from llvmlite.binding import Linkage
from numba import _dynfunc, types  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import (
    AnnotateTypes,
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.typing.context import Context
from numba.core.untyped_passes import (
    FixupArgs,
    GenericRewrites,
    InlineInlinables,
    IRProcessing,
    ReconstructSSA,
    TranslateByteCode,
)

if not (0, 62) <= numba.version_info < (0, 69):
    raise ImportError("other versions of numba may have other passes; kernels are then compiled in its own way")


class _Memory(Context):
    """The same knowledge of types, and what functions make of them is found out once."""

    known: ClassVar[dict[Any, Any]] = {}

    def __init__(self, context: Any) -> None:
        self.__dict__ = context.__dict__

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        if kws or not isinstance(func, types.Function):
            return super().resolve_function_type(func, args, kws)
        looks = any(template.prefer_literal for template in func.templates)  # few look at the value of a number
        given = tuple(args) if looks else tuple(map(types.unliteral, args))
        if (func, given) not in self.known:
            self.known[func, given] = super().resolve_function_type(func, given, kws)
        return self.known[func, given]

    def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
        return self.resolve_function_type(self.resolve_value_type(operator.setitem), (target, index, value), {})


_memory_of = cache(_Memory)


class _Lower(Lower):
    """Places in arrays of one dimension whose numbers stand side by side, in as few operations as there can be."""

    def _place(self, array: Any, index: Any) -> Any:
        """Where it is; None in another kind of array, or if it is more than one place."""
        kind: Any = self.typeof(array.name)
        at: Any = self.typeof(index.name)
        if not all((isinstance(kind, types.Array), isinstance(at, types.Integer))) or (kind.ndim, kind.layout) != (
            1,
            "C",
        ):
            return None
        builder, field = self.builder, self.context.data_model_manager[kind].get_field_position
        value = self.loadvar(array.name)
        place = self.context.cast(builder, self.loadvar(index.name), at, types.int64)
        if at.signed:  # it may count from the end
            last = builder.add(place, builder.extract_value(value, field("nitems")))
            place = builder.select(builder.icmp_signed("<", place, place.type(0)), last, place)
        return builder.gep(builder.extract_value(value, field("data")), [place])

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        place = self._place(target_var, index_var)
        if place is None:
            return super().lower_setitem(target_var, index_var, value_var, signature)
        kind = self.typeof(target_var.name).dtype
        value = self.context.cast(self.builder, self.loadvar(value_var.name), self.typeof(value_var.name), kind)
        return self.context.pack_value(self.builder, kind, value, place)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        place = self._place(value, index)
        if place is None:
            return super().lower_getitem(resty, expr, value, index, signature)
        kind = self.typeof(value.name).dtype
        return self.context.cast(self.builder, self.context.unpack_value(self.builder, kind, place), kind, resty)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    _name = "native_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        return _Lower


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(_Lowering):
    """No machine code; only what others need to call it."""

    def run_pass(self, state: Any) -> bool:
        state.flags.no_compile = True
        super().run_pass(state)
        made, name = state.cr, state.func_id.func_name
        function = _dynfunc.make_function(made.fndesc.lookup_module(), name, "", 0, made.env, (state.library,))
        state.targetctx.insert_user_function(function, made.fndesc, [state.library])
        state.cr = made._replace(cfunc=function)
        return True


class _Code(JITCodeLibrary):
    def _optimize_functions(self, ll_module: Any) -> None:
        """Not one by one: they are optimised together."""
        ll_module.data_layout = self._codegen._data_layout

    def _own_parts(self) -> None:
        """Parts become its own: one that is called once leaves no call, and no arguments.

        All that ends in machine code must do this. Once one kernel has changed the arguments of its copy of a part, the
        linker would hand that copy to the next one that has a part of the same name, and is not done with it.
        """
        for function in self._final_module.functions:
            if function.linkage is Linkage.linkonce_odr:
                function.linkage = Linkage.internal


class _WholeCode(_Code):
    def _optimize_final_module(self) -> None:
        self._own_parts()
        super()._optimize_final_module()


class _LightCode(_Code):
    def _optimize_final_module(self) -> None:
        """With the least effort."""
        self._own_parts()
        passes, builder = self._codegen._module_pass_manager(opt=1, loop_vectorize=False, slp_vectorize=False)
        passes.run(self._final_module, builder)


class _PartCode(_Code):
    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


class _VectorCode(_PartCode):
    def finalize(self) -> None:
        super().finalize()
        self._optimize_final_module()
        JITCodeLibrary._optimize_functions(self, self._final_module)  # asks before a loop, not in it, what overlaps


class _Passes(PassManager):
    _ENFORCING = False  # nothing is tidied up after passes that need no tidying


class Whole(CompilerBase):
    """For kernels that Python calls."""

    code: ClassVar[Any] = _WholeCode
    lowering: ClassVar[Any] = _Lowering

    def define_pipelines(self) -> list[PassManager]:
        state = self.state
        state.typingctx = _memory_of(state.typingctx)
        state.library = self.code(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        untyped = (TranslateByteCode, FixupArgs, IRProcessing, GenericRewrites, InlineInlinables, ReconstructSSA)
        typed = (NopythonTypeInference, PreLowerStripPhis, IRLegalization, AnnotateTypes, self.lowering)
        passes = _Passes("kernel")
        for step in (*untyped, *typed, NoPythonBackend):
            passes.add_pass(step, step.__name__)
        passes.finalize()
        return [passes]


class Light(Whole):
    """For those whose time goes into kernels that they call: they are not worth much of the optimiser's."""

    code = _LightCode


class Part(Whole):
    """For those that only kernels call."""

    code, lowering = _PartCode, _PartLowering


class Vector(Whole):
    """For those with loops that become vectors: optimised alone, before a caller shows that their arguments overlap."""

    code, lowering = _VectorCode, _PartLowering


class Disjoint(Vector):
    """The same for those whose arguments never overlap, though they be parts of one array: nothing is asked."""

    def define_pipelines(self) -> list[PassManager]:
        self.state.flags.noalias = True
        return super().define_pipelines()
