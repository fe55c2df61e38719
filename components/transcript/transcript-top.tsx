import type { RemovedHistory } from '@interlude/protocol/read-models';
import { RemovedTurns } from './removed-turns';

const EMPTY = 'No turn yet. The first appears here as soon as the agent starts to work.';

/** What stands above the oldest loaded turn. */
export function TranscriptTop(props: {
  hasMore: boolean;
  empty: boolean;
  removed: RemovedHistory | undefined;
  loading: boolean;
  error: Error | null;
  retry: () => Promise<boolean>;
}) {
  const { hasMore, empty, removed, loading, error, retry } = props;
  const isWhole = error === null && !hasMore && !loading;
  return (
    <p className="tabular absolute inset-x-0 top-0 flex h-12 items-center gap-2 px-[22px] text-2xs text-ink-3 sm:pl-[86px]">
      {error !== null && (
        <>
          <span className="truncate">{error.message}</span>
          <button type="button" onClick={() => retry()} className="shrink-0 underline hover:text-ink">
            Try again
          </button>
        </>
      )}
      {error === null && !isWhole && 'Loading older turns…'}
      {isWhole && removed === undefined && (empty ? EMPTY : 'Beginning of the session')}
      {isWhole && removed !== undefined && (
        <span>
          <RemovedTurns removed={removed} />
          {empty && '. What the agent does next appears here.'}
        </span>
      )}
    </p>
  );
}
