import { postEvents } from '@/lib/ingest/post-events';
import { mount } from '../../mount';

export const { GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE } = mount({ POST: postEvents });
