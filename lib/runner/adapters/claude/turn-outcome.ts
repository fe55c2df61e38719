import {
  compact,
  type Fields,
  fieldsOf,
  listOf,
  numberOf,
  parseJson,
  textOf,
  textsOf,
} from '@interlude/protocol/fields';
import type { TurnEnd } from '../writer/session-writer';

/** Sentences for result subtypes and terminal reasons whose own text says less. */
const SAYINGS: ReadonlyMap<string, string> = new Map([
  ['error_max_turns', 'The turn stopped at its limit of steps.'],
  ['max_turns', 'The turn stopped at its limit of steps.'],
  ['error_max_budget_usd', 'The turn stopped at its budget.'],
  ['budget_exhausted', 'The turn stopped at its budget.'],
  ['error_max_structured_output_retries', 'The agent did not produce the structured output it was asked for.'],
  ['structured_output_retry_exhausted', 'The agent did not produce the structured output it was asked for.'],
  ['prompt_too_long', 'The conversation is too long for the model.'],
  ['blocking_limit', 'The conversation is too long for the model.'],
]);

/**
 * How a turn ended, according to its result. An interrupted turn has `is_error` and subtype `error_during_execution`, and
 * only its `terminal_reason` says that it was stopped; a turn that the model API refused has subtype `success`.
 *
 * @see SDKResultMessage, TerminalReason, Agent SDK 0.3.329
 */
export function outcomeOf(result: Fields): TurnEnd {
  const subtype = textOf(result.subtype) ?? '';
  const reason = textOf(result.terminal_reason) ?? '';
  if (reason.startsWith('aborted_')) return { kind: 'cancelled' };
  if (result.is_error !== true && !subtype.startsWith('error_')) return { kind: 'success' };
  const apiRefused = reason === 'api_error' || numberOf(result.api_error_status) !== null;
  const code = apiRefused ? 'api_error' : subtype.startsWith('error_') ? subtype : reason || 'error';
  return { kind: 'failed', message: errorText(result, apiRefused), code };
}

/** What is kept of a result with its turn. Times in milliseconds; cost in US dollars, summed over the process. */
export function resultSummary(result: Fields): Fields {
  const usage = fieldsOf(result.usage);
  const denials = listOf(result.permission_denials).length;
  return compact({
    subtype: result.subtype,
    terminalReason: result.terminal_reason,
    stopReason: result.stop_reason,
    numTurns: result.num_turns,
    durationMs: result.duration_ms,
    durationApiMs: result.duration_api_ms,
    totalCostUsd: result.total_cost_usd,
    usage: compact({
      inputTokens: usage.input_tokens,
      outputTokens: usage.output_tokens,
      cacheReadTokens: usage.cache_read_input_tokens,
      cacheCreationTokens: usage.cache_creation_input_tokens,
    }),
    permissionDenials: denials > 0 ? denials : undefined,
    structuredOutput: result.structured_output,
    origin: result.origin,
    resultIndex: result.result_index,
    resumeReason: result.resume_reason,
  });
}

function errorText(result: Fields, apiRefused: boolean): string {
  const said = readable(textOf(result.result) ?? textsOf(result.errors).find((text) => !isDiagnostic(text)) ?? '');
  if (apiRefused) {
    const details = [numberOf(result.api_error_status), textOf(result.api_error_type)].filter((part) => part !== null);
    const refused = `The model API refused the request${details.length > 0 ? ` (${details.join(' ')})` : ''}`;
    return said === '' ? `${refused}.` : `${refused}: ${said}`;
  }
  const saying = SAYINGS.get(textOf(result.subtype) ?? '') ?? SAYINGS.get(textOf(result.terminal_reason) ?? '');
  if (saying !== undefined) return said === '' ? saying : `${saying} ${said}`;
  return said === '' ? 'The agent failed while it was working on this turn.' : said;
}

/** `[ede_diagnostic] …` is meant for the developers of the CLI. */
function isDiagnostic(text: string): boolean {
  return /^\[\w*diagnostic\]/.test(text);
}

/** The message inside `API Error: 400 {"error":{"message":…}}`, or a text without its stack trace. */
function readable(text: string): string {
  const json = text.indexOf('{');
  if (json >= 0) {
    const body = fieldsOf(parseJson(text.slice(json)));
    const message = textOf(fieldsOf(body.error).message) ?? textOf(body.message);
    if (message !== null) return message;
  }
  const stack = text.search(/\n\s+at /);
  return (stack < 0 ? text : text.slice(0, stack)).trim();
}
