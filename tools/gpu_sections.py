"""The sections of tools/gpu_check."""
import gpu_choices
import gpu_pieces
import gpu_rates
import gpu_risks

# Name, part, seconds at most, what it does. A command does one part in this order, then what earlier ones left.
SECTIONS = [
    ("machine", 1, 30, gpu_rates.machine),
    ("smoke", 1, 30, gpu_rates.smoke),
    ("step", 1, 80, gpu_rates.step),
    ("kernels", 1, 130, gpu_rates.kernels),
    ("norms", 1, 60, gpu_rates.norms),
    ("end to end", 1, 110, gpu_rates.end_to_end),
    ("torch", 1, 100, gpu_rates.torch),
    ("tests", 1, 540, gpu_pieces.tests),
    ("measured", 2, 240, gpu_choices.measured),
    ("sizes", 2, 120, gpu_choices.sizes),
    ("parts", 2, 120, gpu_choices.parts),
    ("losses", 2, 60, gpu_choices.losses),
    ("trainings", 2, 90, gpu_choices.trainings),
    ("torch compiled", 2, 200, gpu_choices.torch_compiled),
    ("messages", 3, 120, gpu_risks.messages),
    ("repeatable", 3, 60, gpu_risks.repeatable),
    ("memory", 3, 60, gpu_risks.memory),
    ("sanitizer", 3, 240, gpu_risks.sanitizer),
    ("two ranks", 3, 45, gpu_risks.two_ranks),
]
