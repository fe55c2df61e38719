import type { Source, SourceContext } from './source';

/** As transcripts say it. */
const REASON = 'ended from the dashboard';

/** The verb `end` of a source whose runner is there for one session: that one ends with its runner. */
export function endSessionHandler({ over }: Pick<SourceContext, 'over'>): NonNullable<Source['end']> {
  return async () => {
    over(REASON);
    return { state: 'done' };
  };
}

/**
 * What an interrupt did, in the transcript: the turn ends, background work goes on, waiting messages come next.
 *
 * @param ranTurn a turn was open
 * @param tasks what runs in the background; an interrupt spares it
 * @param waiting messages that the CLI has and no turn has taken up
 */
export function interruptNotice(ranTurn: boolean, tasks: readonly string[], waiting: number): string {
  const what = ranTurn ? 'The turn was interrupted.' : 'There was no turn to interrupt.';
  const count = tasks.length === 1 ? 'A background task goes' : `${tasks.length} background tasks go`;
  const goOn = tasks.length === 0 ? '' : ` ${count} on: ${tasks.join(', ')}.`;
  const next = waiting === 1 ? ' One message still waits and is' : ` ${waiting} messages still wait and are`;
  return what + goOn + (waiting === 0 ? '' : `${next} answered next.`);
}
