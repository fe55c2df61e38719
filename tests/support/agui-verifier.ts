import { Ajv2020 } from 'ajv/dist/2020.js';
import type { ClientEvent, Dialect } from '@/lib/server/agui/client-events';
import { openApiDocument } from '@/lib/server/open-api/open-api-document';

/** Event types known to both 1.0 and 0.0.59. */
const TYPES = new Set(
  `TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END TEXT_MESSAGE_CHUNK TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END
   TOOL_CALL_CHUNK TOOL_CALL_RESULT STATE_SNAPSHOT STATE_DELTA MESSAGES_SNAPSHOT ACTIVITY_SNAPSHOT ACTIVITY_DELTA RAW CUSTOM
   RUN_STARTED RUN_FINISHED RUN_ERROR STEP_STARTED STEP_FINISHED REASONING_START REASONING_MESSAGE_START
   REASONING_MESSAGE_CONTENT REASONING_MESSAGE_END REASONING_MESSAGE_CHUNK REASONING_END REASONING_ENCRYPTED_VALUE
   SUBAGENT_STARTED SUBAGENT_FINISHED SUBAGENT_ERROR`.split(/\s+/),
);

const OUTCOMES: Record<Dialect, readonly string[]> = {
  '1.0': ['success', 'interrupt', 'cancelled'],
  '0.0.59': ['success', 'interrupt'],
};

/** Event pairs that open and close, by id field. `grows`: only allowed in between. */
const BRACKETS = [
  { opens: 'TEXT_MESSAGE_START', grows: 'TEXT_MESSAGE_CONTENT', closes: ['TEXT_MESSAGE_END'], by: 'messageId' },
  {
    opens: 'REASONING_MESSAGE_START',
    grows: 'REASONING_MESSAGE_CONTENT',
    closes: ['REASONING_MESSAGE_END'],
    by: 'messageId',
  },
  { opens: 'REASONING_START', grows: null, closes: ['REASONING_END'], by: 'messageId' },
  { opens: 'TOOL_CALL_START', grows: 'TOOL_CALL_ARGS', closes: ['TOOL_CALL_END'], by: 'toolCallId' },
  { opens: 'STEP_STARTED', grows: null, closes: ['STEP_FINISHED'], by: 'stepName' },
  { opens: 'SUBAGENT_STARTED', grows: null, closes: ['SUBAGENT_FINISHED', 'SUBAGENT_ERROR'], by: 'subagentRunId' },
] as const;

/**
 * Predicts rejections by strict clients, as measured in `tests/fixtures/agui`, plus rules from the source of 1.0
 * (reasoning left open, ownership of parts). Both clients accept whatever passes.
 *
 * @returns the reason for rejection, or null if the stream is accepted
 */
export function rejectionOf(events: readonly ClientEvent[], dialect: Dialect): string | null {
  let state: 'before' | 'running' | 'finished' | 'failed' = 'before';
  let open = new Map<string, ClientEvent>();
  let owners = new Map<string, unknown>();
  let ended = new Set<unknown>();
  for (const [index, event] of events.entries()) {
    const refuse = (why: string) => `${index} ${event.type}: ${why}`;
    if (!TYPES.has(event.type)) {
      if (dialect === '1.0') continue;
      return refuse('an unknown type');
    }
    if (event.type === 'RUN_STARTED') {
      if (state === 'running') return refuse('within a run');
      [state, open, owners, ended] = ['running', new Map(), new Map(), new Set()];
      continue;
    }
    if (event.type === 'RUN_ERROR') {
      if (state === 'failed') return refuse('behind an error');
      state = 'failed';
      continue;
    }
    if (state !== 'running') return refuse(`outside of a run (${state})`);
    if (event.type === 'RUN_FINISHED') {
      const type = (event.outcome as { type: string } | undefined)?.type ?? 'success';
      if (!OUTCOMES[dialect].includes(type)) return refuse(`outcome ${type}`);
      const left = [...open.values()].filter(
        ({ type: opener }) => dialect === '1.0' || !opener.startsWith('REASONING'),
      );
      if (left.length > 0) return refuse(`open: ${left.map((one) => one.type).join(', ')}`);
      state = 'finished';
      continue;
    }
    const bracket = BRACKETS.find(
      ({ opens, grows, closes }) =>
        [opens, grows, ...closes].includes(event.type as never) && isChecked(opens, dialect),
    );
    if (event.type === 'REASONING_MESSAGE_START' && event.role !== 'reasoning') return refuse('its role');
    if (event.subagentRunId === null) return refuse('subagentRunId null');
    if (bracket === undefined) continue;
    const name = event[bracket.by];
    if (typeof name !== 'string') return refuse(`no ${bracket.by}`);
    const owner = bracket.opens === 'STEP_STARTED' ? `:${event.subagentRunId}` : '';
    const key = `${bracket.opens}:${name}${owner}`;
    if (event.type === bracket.opens) {
      if (open.has(key)) return refuse(`${name} is open`);
      if (bracket.opens === 'SUBAGENT_STARTED' && ended.has(name)) return refuse(`${name} began before`);
      open.set(key, event);
    } else if (!open.has(key)) return refuse(`${name} is not open`);
    const part = bracket.opens.replace('_MESSAGE', '');
    if (bracket.by !== 'stepName' && bracket.by !== 'subagentRunId') {
      const ownerKey = `${part}:${name}`;
      if (owners.has(ownerKey) && event.subagentRunId !== undefined && owners.get(ownerKey) !== event.subagentRunId) {
        return refuse(`${name} is somebody else's`);
      }
      if (!owners.has(ownerKey)) owners.set(ownerKey, event.subagentRunId);
    }
    if (!bracket.closes.includes(event.type as never)) continue;
    open.delete(key);
    if (bracket.opens === 'SUBAGENT_STARTED') ended.add(name);
  }
  return null;
}

/** 0.0.59 doesn't check for open reasoning. */
function isChecked(opens: string, dialect: Dialect): boolean {
  return dialect === '1.0' || !opens.startsWith('REASONING');
}

/** The document's types with `additionalProperties: false`, so every served field must be declared. */
const ajv = new Ajv2020({ strict: false });
ajv.addSchema({ $id: 'document', components: { schemas: closed(openApiDocument([]).components.schemas) } });
const check = ajv.compile({ $ref: 'document#/components/schemas/ServedEvent' });

/** The first event with a field that `ServedEvent` doesn't declare, as text; null if none. */
export function undeclaredFieldIn(events: readonly ClientEvent[]): string | null {
  const found = events.find((event) => !check(JSON.parse(JSON.stringify(event))));
  return found === undefined ? null : JSON.stringify([found, check.errors?.slice(0, 4)]);
}

/** Forbids additional properties in a schema, to find undocumented fields. */
export function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.fromEntries(Object.entries(value).map(([name, field]) => [name, closed(field)]));
  const isShape = 'properties' in value && 'type' in value && !('additionalProperties' in value);
  return isShape ? { ...fields, additionalProperties: false } : fields;
}
