"""Checks lines of JSON against docs/report.schema.json, and that changed lines do not follow it."""

import copy
import json
import sys

try:
    import jsonschema
except ImportError as missing:
    print(missing)
    sys.exit(77)

with open(sys.argv[1], encoding="utf-8") as file:
    schema = json.load(file)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
with open(sys.argv[2], encoding="utf-8") as file:
    reports = [json.loads(line) for line in file]
for report in reports:
    validator.validate(report)


def changes(report):
    """Reports that are wrong: an unknown field at two places, another type, a field that is missing."""
    for change in (
        lambda r: r.update(invented=1),
        lambda r: r["inspections"][0].update(invented=1),
        lambda r: r.update(frame="12"),
        lambda r: r.pop("verdict"),
    ):
        changed = copy.deepcopy(report)
        change(changed)
        yield changed


refused = sum(not validator.is_valid(changed) for changed in changes(reports[0]))
print(f"{len(reports)} reports follow the schema, {refused} changed ones do not")
