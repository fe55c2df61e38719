import type { Source, SourceSurroundings } from './source';

/** As transcripts say it. */
const REASON = 'ended from the dashboard';

/** The verb `end` of a source whose runner is there for one session: that one ends with its runner. */
export function endOf({ over }: Pick<SourceSurroundings, 'over'>): NonNullable<Source['end']> {
  return async () => {
    over(REASON);
    return { state: 'done' };
  };
}
