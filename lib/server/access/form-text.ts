import { AppError } from '@interlude/protocol/errors';

/**
 * The body of a form, of which a stranger may not make us keep more than its worth.
 *
 * @param what the form is for, in its refusal
 * @throws AppError `malformed`, `too_large`
 */
export async function formText(
  request: Request,
  what: 'sign-in' | 'sign-out' | 'logout',
  maxBytes: number,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  try {
    for await (const chunk of request.body ?? []) {
      bytes += chunk.byteLength;
      if (bytes > maxBytes) break;
      text += decoder.decode(chunk, { stream: true });
    }
  } catch (cause) {
    throw new AppError('malformed', 'The form ended before it was complete. Send it again.', { cause });
  }
  if (bytes > maxBytes) throw new AppError('too_large', `A ${what} form has at most ${maxBytes} bytes.`);
  return text + decoder.decode();
}
