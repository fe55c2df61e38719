import { AppError } from '@/lib/protocol/errors';

/** A logout token has less than 2 KiB. */
const MAX_FORM_BYTES = 32 * 1024;

/**
 * The logout token in a form that a provider, or anybody, posts.
 *
 * @throws AppError `malformed`, `too_large`
 */
export async function logoutTokenIn(request: Request): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  try {
    for await (const chunk of request.body ?? []) {
      bytes += chunk.byteLength;
      if (bytes > MAX_FORM_BYTES) break;
      text += decoder.decode(chunk, { stream: true });
    }
  } catch (cause) {
    throw new AppError('malformed', 'The form ended before it was complete. Send it again.', { cause });
  }
  if (bytes > MAX_FORM_BYTES) throw new AppError('too_large', `A logout form has at most ${MAX_FORM_BYTES} bytes.`);
  const [token, ...more] = new URLSearchParams(text + decoder.decode()).getAll('logout_token');
  if (token !== undefined && token !== '' && more.length === 0) return token;
  throw new AppError('malformed', 'A back-channel logout is a form with one field, logout_token. Send that.');
}
