"""Central noise without a centre: shares of noise behind shares of zero, as [Kairouz, Liu & Steinke 2021] have it."""
