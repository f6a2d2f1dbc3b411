"""What cannot be seen, or turns the direction of text, is seen in the chat's input; what is sent is what was typed or pasted."""

from __future__ import annotations

from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput

from cru.core.base.values.visible import mark_in_place


class HiddenMarks(Processor):
    """Each such character is drawn as one that is seen, in its place."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = transformation_input.fragments
        return Transformation([(fragment[0], mark_in_place(fragment[1]), *fragment[2:]) for fragment in fragments])
