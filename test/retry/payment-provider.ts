/** A typical payment provider: it recognizes a charge by its idempotency key, and answers with the first one. */
export class Provider {
  readonly charges = new Map<string, { readonly id: string; refunded: boolean }>();
  readonly refunds = new Set<string>();
  /** How many further charges take effect but lose their response. */
  lostResponses = 0;

  charge(key: string): string {
    const existing = this.charges.get(key);
    const payment = existing ?? { id: `payment-${this.charges.size + 1}`, refunded: false };
    this.charges.set(key, payment);
    if (this.lostResponses > 0) {
      this.lostResponses -= 1;
      throw new Error("no answer in time");
    }
    return payment.id;
  }

  refund(key: string, id: string): void {
    if (this.refunds.has(key)) return;
    this.refunds.add(key);
    for (const payment of this.charges.values()) if (payment.id === id) payment.refunded = true;
  }

  /** The charges that were not refunded. */
  get standing(): string[] {
    return [...this.charges.values()].filter(({ refunded }) => !refunded).map(({ id }) => id);
  }
}
