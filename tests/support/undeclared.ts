import { Ajv2020 } from 'ajv/dist/2020.js';
import type { ClientEvent } from '@/lib/server/agui/client-events';
import { openApiDocument } from '../../lib/server/open-api/open-api-document';

/** The document's types with `additionalProperties: false`: every served field must be declared. */
const ajv = new Ajv2020({ strict: false });
ajv.addSchema({ $id: 'document', components: { schemas: closed(openApiDocument([]).components.schemas) } });
const check = ajv.compile({ $ref: 'document#/components/schemas/ServedEvent' });

/** The first event with a field that `ServedEvent` does not declare, as text; null if there is none. */
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
