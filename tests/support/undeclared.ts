import { Ajv2020 } from 'ajv/dist/2020.js';
import type { ClientEvent } from '@/lib/server/agui/client-events';
import made from '@/lib/server/open-api/answer-schemas.json';

/** The types that the API declares, without fields that they do not name: what is served is to be declared. */
const ajv = new Ajv2020({ strict: false });
ajv.addSchema({ $id: 'made', components: { schemas: closed(made.schemas) } });
const check = ajv.compile({ $ref: 'made#/components/schemas/ServedEvent' });

/** @returns what of these events the type of what AG-UI clients are served does not declare; null if nothing */
export function undeclaredIn(events: readonly ClientEvent[]): string | null {
  const found = events.find((event) => !check(JSON.parse(JSON.stringify(event))));
  return found === undefined ? null : JSON.stringify([found, check.errors?.slice(0, 4)]);
}

function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.fromEntries(Object.entries(value).map(([name, field]) => [name, closed(field)]));
  const isShape = 'properties' in value && 'type' in value && !('additionalProperties' in value);
  return isShape ? { ...fields, additionalProperties: false } : fields;
}
