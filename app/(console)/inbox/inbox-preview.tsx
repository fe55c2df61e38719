'use client';

import type { PreviewProps } from '@/components/sessions/session-nav';
import { useSessionRow } from '@/components/sessions/use-sessions';
import { PreviewBody } from '../preview-body';
import { SessionPreview, useSettledId } from '../session-preview';

const Context: typeof PreviewBody = (props) => <PreviewBody {...props} hasRequests={false} />;

/** Previews the chosen row's session, without its requests: the row answers them. */
export function InboxPreview(props: PreviewProps) {
  const { error, refetch } = useSessionRow(useSettledId(props.sessionId));
  const missing =
    error === null ? (
      'Loading…'
    ) : (
      <span>
        This session can’t be loaded: {error.message}{' '}
        <button type="button" onClick={() => void refetch()} className="underline hover:text-ink">
          Try again
        </button>
      </span>
    );
  return <SessionPreview {...props} body={Context} rows="data-inbox-session" missing={missing} />;
}
