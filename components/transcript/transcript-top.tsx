const EMPTY = 'No turn yet. The first appears here as soon as the agent starts to work.';

/** What stands above the oldest loaded turn. */
export function TranscriptTop(props: {
  hasMore: boolean;
  empty: boolean;
  loading: boolean;
  error: Error | null;
  retry: () => Promise<boolean>;
}) {
  const { hasMore, empty, loading, error, retry } = props;
  return (
    <p className="absolute inset-x-0 top-0 flex h-12 items-center gap-2 px-5 text-2xs text-ink-3 sm:pl-[84px]">
      {error !== null && (
        <>
          <span className="truncate">{error.message}</span>
          <button type="button" onClick={() => retry()} className="shrink-0 underline hover:text-ink">
            Try again
          </button>
        </>
      )}
      {error === null && (hasMore || loading) && 'Loading older turns…'}
      {error === null && !hasMore && !loading && (empty ? EMPTY : 'Beginning of the session')}
    </p>
  );
}
