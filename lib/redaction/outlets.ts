import { redactModel } from './redact-model';
import { prepareTexts, type Rest, redactedText } from './redacted-text';

/**
 * Ways out of Interlude to readers that no principal stands for: other services, collectors, logs, lock screens. They
 * never receive secrets. Answers of the API are for a principal, whose `redacts` decides (lib/server/answer-route.ts).
 */
export const OUTLETS = ['webhook', 'traces', 'metrics', 'server-log', 'desktop-notice'] as const;
export type Outlet = (typeof OUTLETS)[number];

declare const CLEARED_FOR: unique symbol;
/** A text without secrets, for one outlet. Only this module makes them, so what an outlet is given was redacted. */
export type ClearedText<To extends Outlet> = string & { readonly [CLEARED_FOR]: To };

export function clearedText<To extends Outlet>(_outlet: To, text: string): ClearedText<To> {
  return redactedText(text).text as ClearedText<To>;
}

/** `clearedText` for a text that may be long. `rest` lets other work run when it is due. */
export async function clearedLongText<To extends Outlet>(
  outlet: To,
  text: string,
  rest: Rest,
): Promise<ClearedText<To>> {
  await prepareTexts(text, rest);
  return clearedText(outlet, text);
}

/**
 * JSON of a value without secrets in any of its texts, ids included.
 *
 * @param rest lets other work run when it is due
 */
export async function clearedJson<To extends Outlet>(
  _outlet: To,
  value: object,
  rest: Rest = () => null,
): Promise<ClearedText<To>> {
  return JSON.stringify(await redactModel(value, rest, true)) as ClearedText<To>;
}
