import { fieldsOf, parseJson, textOf } from '@/lib/protocol/fields';
import { readControlFile } from '@/lib/runner/control-port/control-file';
import { type CallTool, refused } from './agent-tools';

/**
 * Calls the tools of the runner behind a control port, which knows by the caller's processes whose session it is.
 *
 * Failure: the agent is told what is wrong, in a sentence; the next call looks for the runner anew.
 */
const WITHIN_MS = 5_000;

/** @param pids the agent's process is one of these, the nearest first */
export function forwardingTo(controlFile: string, pids: readonly number[]): CallTool {
  return async (tool, input) => {
    const control = await readControlFile(controlFile);
    if (control === null) return refused('Interlude’s companion is not running, so nobody was told. Go on without it.');
    try {
      const response = await fetch(`${control.url}/tools/${tool}?pid=${pids.join(',')}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${control.secret}`, 'content-type': 'application/json' },
        body: JSON.stringify(input ?? {}),
        signal: AbortSignal.timeout(WITHIN_MS),
      });
      const { text, isError, error } = fieldsOf(parseJson(await response.text()));
      if (response.ok && typeof text === 'string') return { text, isError: isError === true };
      return refused(`Interlude refused: ${textOf(error) ?? `status ${response.status}`}`);
    } catch {
      return refused('Interlude’s companion does not answer, so nobody may have been told. Go on without it.');
    }
  };
}
