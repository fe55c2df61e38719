import { pageNonce } from '@/app/page-nonce';
import { embedOrigins } from '@/lib/server/access/embeds';
import { EmbedStart } from './embed-start';
import type { EmbedOf } from './embed-view';

/** The whole of an embed's page as the server makes it: who may be around it, and nothing that anybody may not know. */
export async function EmbedShell({ of }: { of: EmbedOf }) {
  return (
    <EmbedStart
      of={of}
      origins={embedOrigins(process.env)}
      nonce={await pageNonce()}
      // oxlint-disable-next-line react-compiler/purity -- runs once a request, on the server
      renderedAt={Date.now()}
    />
  );
}
