import { redactModel } from './redact-model';
import { type Rest, redactedText } from './redacted-text';

/**
 * Ways out of Interlude to readers that no principal stands for: other services, collectors, logs, lock screens. They
 * never receive secrets. Answers of the API are for a principal, whose `redacts` decides (lib/server/handle-route.ts).
 */
export const OUTLETS = ['webhook', 'traces', 'metrics', 'server-log', 'desktop-notice'] as const;
export type Outlet = (typeof OUTLETS)[number];

/** A label's value in Prometheus' text format, with its quotes. */
const LABEL_VALUE = /"((?:[^"\\\n]|\\.)*)"/g;
const LINES_AT_ONCE = 500;

declare const REDACTED_FOR: unique symbol;
/** A text without secrets, for one outlet. Only this module makes them, so what an outlet is given was redacted. */
export type RedactedFor<To extends Outlet> = string & { readonly [REDACTED_FOR]: To };

export function redactedFor<To extends Outlet>(_outlet: To, text: string): RedactedFor<To> {
  return redactedText(text).text as RedactedFor<To>;
}

/**
 * Redacts metrics in Prometheus' text format. Only the values of labels can hold a secret. Few are distinct, so each is
 * redacted once.
 *
 * @param rest lets other work run when it is due
 */
export async function redactedMetrics(text: string, rest: Rest): Promise<RedactedFor<'metrics'>> {
  const redacted = new Map<string, string>();
  const redact = (_quoted: string, value: string) => {
    const known = redacted.get(value) ?? redactedFor('metrics', value);
    redacted.set(value, known);
    return `"${known}"`;
  };
  const lines = text.split('\n');
  const shown: string[] = [];
  for (let at = 0; at < lines.length; at += LINES_AT_ONCE) {
    const some = lines.slice(at, at + LINES_AT_ONCE).join('\n');
    shown.push(some.replace(LABEL_VALUE, redact));
    await rest();
  }
  return shown.join('\n') as RedactedFor<'metrics'>;
}

/**
 * JSON of a value without secrets in any of its texts, ids included.
 *
 * @param rest lets other work run when it is due
 */
export async function redactedJson<To extends Outlet>(
  _outlet: To,
  value: object,
  rest: Rest = () => null,
): Promise<RedactedFor<To>> {
  return JSON.stringify(await redactModel(value, rest, true)) as RedactedFor<To>;
}
