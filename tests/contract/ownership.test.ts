import { inProcessServer } from '../support/server-target';
import { describeOwnershipContract } from './ownership-contract';

describeOwnershipContract('in this process', inProcessServer);
