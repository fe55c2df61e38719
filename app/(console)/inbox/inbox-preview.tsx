'use client';

import type { PreviewProps } from '@/components/sessions/session-nav';
import { useSessionRow } from '@/components/sessions/use-sessions';
import { PreviewBody } from '../preview-body';
import { SessionPreview } from '../session-preview';

const Context: typeof PreviewBody = (props) => <PreviewBody {...props} hasRequests={false} />;

/** The session of the chosen row, without its request, which the row answers. */
export function InboxPreview(props: PreviewProps) {
  const { error } = useSessionRow(props.sessionId);
  const missing = error === null ? 'Loading…' : `This session can’t be loaded: ${error.message}`;
  return <SessionPreview {...props} body={Context} rows="data-inbox-session" missing={missing} />;
}
