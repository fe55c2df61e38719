import { postAck } from '@/lib/commands/acknowledge';
import { mount } from '../../../../../../mount';

export const { GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE } = mount({ POST: postAck });
